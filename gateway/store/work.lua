#!lua flags=allow-oom
-- Claims on work that is due: take them, keep them.
--
-- Out of memory is allowed here: a holder that could not renew would give up work in the middle of a tool. What this
-- writes is bounded by the members there are.
--
-- KEYS  work, generations, tokens of one queue.
-- ARGV  'claim', offset, lease, token, most, prefix of the documents
--       'renew', offset, lease, then member, token for each hold

local work, generations, tokens = KEYS[1], KEYS[2], KEYS[3]
local now = server_now(tonumber(ARGV[2]))
local until_ms = digits(now + tonumber(ARGV[3]))

-- Everything is read before anything is written: a document of a wrong kind then fails the claim whole.
local function claim(token, most, documents)
  local due = redis.call('ZRANGEBYSCORE', work, '-inf', digits(now), 'LIMIT', 0, most)
  local reply = { now, '', #due }
  for _, member in ipairs(due) do
    reply[#reply + 1] = member
    reply[#reply + 1] = redis.call('HGET', generations, member) or 0
    reply[#reply + 1] = until_ms
    append_documents(reply, documents, member)
  end
  redis.call('HLEN', tokens)
  for _, member in ipairs(due) do
    redis.call('HSET', tokens, member, token)
    redis.call('ZADD', work, until_ms, member)
  end
  reply[2] = redis.call('ZRANGE', work, 0, 0, 'WITHSCORES')[2] or ''
  return reply
end

local function renew()
  local reply = {}
  for n = 4, #ARGV, 2 do
    local member = ARGV[n]
    if redis.call('HGET', tokens, member) == ARGV[n + 1] and redis.call('ZSCORE', work, member) then
      redis.call('ZADD', work, until_ms, member)
      reply[#reply + 1] = redis.call('HGET', generations, member) or '0'
    else
      reply[#reply + 1] = ''
    end
  end
  return reply
end

if ARGV[1] == 'claim' then
  return claim(ARGV[4], ARGV[5], ARGV[6])
end
return renew()
