-- Shared by commit.lua and work.lua: what whoever takes a claim is handed. Reads only.

-- Appends id, version, body of the member's document and of those that it loads, as far as they exist.
-- Bodies are opaque. The documents' keys are not in KEYS: their names are only known here, they are only read, and
-- the hash tag keeps them in the slot.
local function append_documents(reply, prefix, member)
  local count_at = #reply + 1
  reply[count_at] = 0
  local function append(id, fields)
    if fields[1] then
      reply[count_at] = reply[count_at] + 1
      reply[#reply + 1] = id
      reply[#reply + 1] = fields[1]
      reply[#reply + 1] = fields[2]
    end
  end
  local own = redis.call('HMGET', prefix .. member, 'v', 'd', 'loads')
  append(member, own)
  for id in string.gmatch(own[3] or '', '%S+') do
    append(id, redis.call('HMGET', prefix .. id, 'v', 'd'))
  end
end

-- The server's clock in milliseconds, moved by what a test adds to it.
local function server_now(offset)
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000) + offset
end

-- Lua prints numbers from 10^14 on as 1e+14, which no command takes.
local function digits(number)
  return string.format('%.0f', number)
end
