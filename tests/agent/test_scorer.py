"""The default scorer: deterministic, from 0 to 1, in every script."""

import subprocess
import sys

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agent.scorer import overlap, tokens

texts = st.text(max_size=200)


@given(texts, texts)
@example("退款", "退款 A-1042")
@example("ﷺ", "İ")
def test_a_score_is_from_0_to_1_and_the_same_both_ways_and_every_time(choice: str, unit: str):
    score = overlap(choice, unit)
    assert 0.0 <= score <= 1.0
    assert score == overlap(unit, choice)
    tokens.cache_clear()
    assert score == overlap(choice, unit)


@given(texts)
def test_a_text_is_wholly_related_to_itself_if_it_has_any_words(text: str):
    assert overlap(text, text) == (1.0 if tokens(text) else 0.0)


@pytest.mark.parametrize("seed", ["0", "1"])
def test_the_seed_of_the_process_changes_nothing(seed: str):
    code = (
        "from agent.scorer import overlap, tokens;"
        "print(overlap('issue_refund 5000 A-1042', 'refund order A-1042 for 5,000'), sorted(tokens('客户要求退款')))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
    )
    assert ran.stdout == "0.6 ['客户', '户要', '求退', '要求', '退款']\n"


@pytest.mark.parametrize(
    ("choice", "unit"),
    [
        ("issue_refund 5000 USD", "The customer wants a refund"),
        ("给订单退款", "客户要求为这个订单退款"),
        ("返金を実行する", "お客様は返金を希望しています"),
        ("환불 처리", "고객이 환불을 요청했습니다"),
        ("คืนเงิน", "ลูกค้าขอคืนเงินทั้งหมด"),
        ("Refund 退款 A-1042", "请为 A-1042 办理退款"),
        ("refund straße", "REFUND STRASSE"),
        ("ＵＳＤ", "usd"),
        ("amount 5000", "$5,000"),
        ("café", "cafe\u0301"),
    ],
)
def test_related_texts_score_above_zero(choice: str, unit: str):
    assert overlap(choice, unit) > 0


@pytest.mark.parametrize(
    ("choice", "unit"),
    [
        ("issue_refund", "Weather is fine today"),
        ("the order is with you", "this is what they were with"),
        ("退款", "今天天气很好"),
        ("refund", ""),
        ("!!!", "???"),
    ],
)
def test_unrelated_texts_score_zero(choice: str, unit: str):
    assert overlap(choice, unit) == 0


def test_more_in_common_scores_higher():
    choice = "issue_refund Refund an order A-1042 5000"
    assert overlap(choice, "Refund order A-1042: 5000") > overlap(choice, "Order A-1042 was sent to Berlin")


def test_a_thousands_comma_is_no_word_boundary_but_a_list_comma_is():
    assert tokens("5,000 and 1,2,3") == {"5000", "1", "2", "3"}
