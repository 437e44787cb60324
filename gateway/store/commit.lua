#!lua
-- One commit: everything in it, or nothing.
--
-- A script that fails does not undo what it wrote, so all that can fail comes before the first write, and the line
-- "nothing fails below" says where that is. No flags above: a server that is out of memory, read-only or short of
-- replicas refuses the whole script before it starts.
--
-- KEYS  operation, counter, journal; per queue: work, generations, tokens; per write, expectation: the document;
--       per append: the transcript; per index: its set.
-- ARGV  flat, read once from left to right in the order below; counts first. commit.py writes it.

local MOST_ARGUMENTS = 20000
local RING_AHEAD_MS = 2000

local position, key_position = 0, 3
local function argument()
  position = position + 1
  return ARGV[position]
end
local function next_key()
  key_position = key_position + 1
  return KEYS[key_position]
end

local offset = tonumber(argument())
local keep = argument()
local refresh = argument() == '1'
local not_after = tonumber(argument())
local counts = {}
for _, name in ipairs({ 'queues', 'writes', 'expects', 'appends', 'indexes', 'rows', 'changes', 'works' }) do
  counts[name] = tonumber(argument())
end
local now = server_now(offset)

local queues = {}
for n = 1, counts.queues do
  queues[n] = { work = next_key(), generations = next_key(), tokens = next_key(), bell = argument() }
end
local held = queues[tonumber(argument())]
local held_member, held_token = argument(), argument()
local taken = queues[tonumber(argument())]
local taken_member, taken_token, lease, documents = argument(), argument(), tonumber(argument()), argument()

-- The claim that this commit took, as it is now, appended to the reply if it is (still) live under our token.
local function append_claim(reply, took)
  if took ~= '1' or redis.call('HGET', taken.tokens, taken_member) ~= taken_token then
    return reply
  end
  local until_ms = redis.call('ZSCORE', taken.work, taken_member)
  if until_ms and tonumber(until_ms) > now then
    reply[#reply + 1] = redis.call('HGET', taken.generations, taken_member) or 0
    reply[#reply + 1] = digits(tonumber(until_ms))
    append_documents(reply, documents, taken_member)
  end
  return reply
end

local before = redis.call('GET', KEYS[1])
if before then
  if refresh then
    -- WAIT only counts what this connection wrote: without a write here, it would confirm nothing at once.
    redis.call('PEXPIRE', KEYS[1], keep)
  end
  return append_claim({ 'replayed', before }, string.match(before, '^%d+ %d+ (%d)'))
end

if #ARGV > MOST_ARGUMENTS then
  return { 'oversized' }
end
if not_after and now > not_after then
  return { 'late', digits(now) }
end
if held and redis.call('HGET', held.tokens, held_member) ~= held_token then
  return { 'lost' }
end

local function kind_of(key)
  return redis.call('TYPE', key).ok
end
local function differs(key, kind)
  local found = kind_of(key)
  if found ~= kind and found ~= 'none' then
    return { 'damaged', key, 'expected ' .. kind .. ', found ' .. found }
  end
end
local function version_differs(number, key, expected)
  local found = redis.pcall('HGET', key, 'v')
  if type(found) == 'table' then
    return { 'damaged', key, 'expected hash, found ' .. kind_of(key) }
  end
  if (found or '0') ~= expected then
    return { 'conflict', number, found or '0' }
  end
end

local wrong

local writes = {}
for n = 1, counts.writes do
  local write =
    { key = next_key(), expected = argument(), kept = argument(), body = argument(), loads = argument(), expires = argument() }
  wrong = version_differs(n, write.key, write.expected)
  if wrong then
    return wrong
  end
  writes[n] = write
end
for n = 1, counts.expects do
  wrong = version_differs(counts.writes + n, next_key(), argument())
  if wrong then
    return wrong
  end
end

local first_append = key_position
for _ = 1, counts.appends do
  wrong = differs(next_key(), 'list')
  if wrong then
    return wrong
  end
end
local first_index = key_position
for _ = 1, counts.indexes do
  wrong = differs(next_key(), 'zset')
  if wrong then
    return wrong
  end
end

local first_row = 0
if counts.rows > 0 then
  wrong = differs(KEYS[2], 'string') or differs(KEYS[3], 'stream')
  if wrong then
    return wrong
  end
  local counter, last = redis.call('GET', KEYS[2]) or '0', '0-0'
  if kind_of(KEYS[3]) == 'stream' then
    local facts = redis.call('XINFO', 'STREAM', KEYS[3])
    for n = 1, #facts, 2 do
      if facts[n] == 'last-generated-id' then
        last = facts[n + 1]
      end
    end
  end
  if last ~= counter .. '-0' then
    return { 'damaged', KEYS[3], 'its last row is ' .. last .. ', its counter says ' .. counter }
  end
  first_row = tonumber(counter) + 1
end

for n = 1, counts.queues do
  local queue = queues[n]
  wrong = differs(queue.work, 'zset') or differs(queue.generations, 'hash') or differs(queue.tokens, 'hash')
  if wrong then
    return wrong
  end
end

-- Nothing fails below: every key is of its kind or absent, every number came as one.

if counts.rows > 0 then
  redis.call('SET', KEYS[2], digits(first_row + counts.rows - 1))
  for n = 0, counts.rows - 1 do
    redis.call('XADD', KEYS[3], digits(first_row + n) .. '-0', 't', digits(now), 'b', argument())
  end
end

for n = 1, counts.writes do
  local write = writes[n]
  if write.kept == '0' then
    redis.call('DEL', write.key)
  else
    redis.call('HSET', write.key, 'v', digits(write.expected + 1), 'd', write.body)
    if write.loads ~= '' then
      redis.call('HSET', write.key, 'loads', write.loads)
    elseif write.expected ~= '0' then
      redis.call('HDEL', write.key, 'loads')
    end
    if write.expires ~= '' then
      redis.call('PEXPIRE', write.key, write.expires)
    elseif write.expected ~= '0' then
      redis.call('PERSIST', write.key)
    end
  end
end

for n = 1, counts.appends do
  for _ = 1, tonumber(argument()) do
    redis.call('RPUSH', KEYS[first_append + n], argument())
  end
end

for _ = 1, counts.changes do
  local index, score, member = KEYS[first_index + tonumber(argument())], argument(), argument()
  if score == '' then
    redis.call('ZREM', index, member)
  else
    redis.call('ZADD', index, score, member)
  end
end

local rung = {}
local function due(queue, member, at)
  redis.call('ZADD', queue.work, digits(at), member)
  -- What this commit takes itself needs nobody else's look; what is due later is found by everybody's sweeps before.
  if (queue ~= taken or member ~= taken_member) and at <= now + RING_AHEAD_MS then
    rung[queue] = true
  end
end

local function is_live(queue, member)
  local score = redis.call('ZSCORE', queue.work, member)
  return redis.call('HEXISTS', queue.tokens, member) == 1 and score and tonumber(score) > now, score
end

local function wake(queue, member, generation, at)
  generation = generation + 1
  redis.call('HSET', queue.generations, member, digits(generation))
  local live, score = is_live(queue, member)
  if not live then
    due(queue, member, math.min(at or now, tonumber(score) or math.huge))
  end
  return generation
end

local function release(queue, member, generation, at, seen, leave)
  redis.call('HDEL', queue.tokens, member)
  if generation ~= seen then
    due(queue, member, now)
  elseif leave then
    redis.call('ZREM', queue.work, member)
    redis.call('HDEL', queue.generations, member)
    return 0
  else
    due(queue, member, at or now)
  end
  return generation
end

local result = { digits(now), digits(first_row), '0' }
for _ = 1, counts.works do
  local queue, member, at, seen, leave =
    queues[tonumber(argument())], argument(), tonumber(argument()), tonumber(argument()), argument() == '1'
  local generation = tonumber(redis.call('HGET', queue.generations, member) or 0) or 0
  if seen then
    generation = release(queue, member, generation, at, seen, leave)
  else
    generation = wake(queue, member, generation, at)
  end
  result[#result + 1] = digits(generation)
end

if taken and not is_live(taken, taken_member) then
  redis.call('HSET', taken.tokens, taken_member, taken_token)
  redis.call('ZADD', taken.work, digits(now + lease), taken_member)
  result[3] = '1'
end

for queue in pairs(rung) do
  -- Only a hint, so a user without the right to publish loses time and nothing else.
  redis.pcall('PUBLISH', 'signoff:bell', queue.bell)
end

local kept = table.concat(result, ' ')
redis.call('SET', KEYS[1], kept, 'PX', keep)
return append_claim({ 'ok', kept }, result[3])
