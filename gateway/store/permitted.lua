#!lua flags=no-writes
-- Which of the commands that commits use the connection's user may not use: the scripts must never stop midway.
-- KEYS  one of our keys.

local commands = {
  { 'DEL' }, { 'GET' }, { 'HDEL', 'f' }, { 'HEXISTS', 'f' }, { 'HGET', 'f' }, { 'HLEN' }, { 'HMGET', 'f' },
  { 'HSET', 'f', 'v' }, { 'PERSIST' }, { 'PEXPIRE', '1' }, { 'RPUSH', 'v' }, { 'SET', 'v' }, { 'TYPE' },
  { 'XADD', '1-0', 'f', 'v' }, { 'ZADD', '1', 'm' }, { 'ZRANGE', '0', '0' }, { 'ZRANGEBYSCORE', '0', '1' },
  { 'ZREM', 'm' }, { 'ZSCORE', 'm' },
}
local refused = {}
for _, command in ipairs(commands) do
  local name = table.remove(command, 1)
  if not redis.acl_check_cmd(name, KEYS[1], unpack(command)) then
    refused[#refused + 1] = name
  end
end
if not redis.acl_check_cmd('TIME') then
  refused[#refused + 1] = 'TIME'
end
if not redis.acl_check_cmd('XINFO', 'STREAM', KEYS[1]) then
  refused[#refused + 1] = 'XINFO'
end
return refused
