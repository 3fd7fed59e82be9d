// Made by scripts/build-lua.mjs from src/backends/redis/script and src/domain; not to be edited.

export const TICK_SCRIPT = `local ____loaded, ____later = {}, {}
local function ____need(name)
if ____loaded[name] == nil then ____loaded[name] = ____later[name]() end
return ____loaded[name]
end
____later["domain.description"] = function()
local describeAdaptive, knownOrNull, finiteOrNull, describeScope, describeSource
local ____from = ____need("lualib_bundle")
local __TS__Spread = ____from.__TS__Spread
local __TS__ArrayMap = ____from.__TS__ArrayMap
local ____from = ____need("domain.cooldown")
local cooldownWaitMs = ____from.cooldownWaitMs
local ____from = ____need("domain.gates.gate")
local requestsBooked = ____from.requestsBooked
local tokensBooked = ____from.tokensBooked
local ____from = ____need("domain.scheduling.first-token")
local firstTokenDueMs = ____from.firstTokenDueMs
local ____from = ____need("domain.scheduling.health")
local successShare = ____from.successShare
local ____from = ____need("domain.scheduling.in-force")
local rateInForce = ____from.rateInForce
local windowInForce = ____from.windowInForce
local ____from = ____need("domain.scheduling.pool")
local poolOf = ____from.poolOf
local ____from = ____need("domain.standing")
local usualRefusal = ____from.usualRefusal
local ____from = ____need("domain.scheduling.decay")
local decayFactor = ____from.decayFactor
function describeAdaptive(state, source, nowMs)
local ____source_2 = source
local pacer = ____source_2.pacer
local evidence = ____source_2.evidence
local health = ____source_2.health
local config = ____source_2.config
local cutAtMs = math.max(pacer.window.wMax > 0 and pacer.window.cutAtMs or -1e999, pacer.rate.wMax > 0 and pacer.rate.cutAtMs or -1e999)
local facts = {
ownTtftMs = health.ttftMs,
poolTtftMs = poolOf(state, nowMs).ttftMs,
ttftTimeoutMs = config.ttftTimeoutMs,
promptTokens = nil,
meanPromptTokens = 0
}
local ____finiteOrNull_result_5 = finiteOrNull(windowInForce(state, source, nowMs))
local ____finiteOrNull_result_6 = finiteOrNull(rateInForce(state, source, nowMs))
local ____knownOrNull_result_7 = knownOrNull(pacer.learnedRpm)
local ____knownOrNull_result_8 = knownOrNull(pacer.learnedTpm)
local ____temp_3
if cutAtMs == -1e999 then
____temp_3 = nil
else
____temp_3 = nowMs - cutAtMs
end
local ____evidenceNow_result_9 = (evidence.score == 0 and 0 or evidence.score * decayFactor(nowMs - evidence.atMs, 60000))
local ____TRIPS_AT_10 = 9.2
local ____successShare_result_11 = successShare(health, nowMs)
local ____knownOrNull_result_12 = knownOrNull(health.ttftMs)
local ____knownOrNull_result_13 = knownOrNull(health.tpotMs)
local ____state_scheduling_overdue_4
if state.scheduling.overdue then
____state_scheduling_overdue_4 = firstTokenDueMs(facts)
else
____state_scheduling_overdue_4 = nil
end
return {
window = ____finiteOrNull_result_5,
ratePerS = ____finiteOrNull_result_6,
learnedRpm = ____knownOrNull_result_7,
learnedTpm = ____knownOrNull_result_8,
lastCutAgoMs = ____temp_3,
evidence = ____evidenceNow_result_9,
tripsAt = ____TRIPS_AT_10,
successShare = ____successShare_result_11,
ttftMs = ____knownOrNull_result_12,
tpotMs = ____knownOrNull_result_13,
firstTokenDueMs = ____state_scheduling_overdue_4,
ramping = (nowMs - source.reclosedAtMs < 10000)
}
end
function describeScope(state)
local ____state_budgets_0 = state.budgets
local retryTokens = ____state_budgets_0.retryTokens
local hedgeTokens = ____state_budgets_0.hedgeTokens
return {
budgets = {retryTokens = retryTokens, hedgeTokens = hedgeTokens, retriesInFlight = state.retriesInFlight},
workers = __TS__ArrayMap(
{__TS__Spread(state.workers)},
function(____, ____bindingPattern0)
local virtualTime
local waiting
local worker
worker = ____bindingPattern0[1]
waiting = ____bindingPattern0[2].waiting
virtualTime = ____bindingPattern0[2].virtualTime
return {worker = worker, waiting = waiting, virtualTime = virtualTime}
end
)
}
end
function describeSource(state, source, clock)
local ____source_1 = source
local breaker = ____source_1.breaker
local config = ____source_1.config
return {
name = config.name,
state = breaker.state,
epoch = breaker.epoch,
openForMs = breaker.state == "open" and math.max(0, breaker.openUntilMs - clock.nowMs) or 0,
probeInFlight = breaker.probeLease ~= "",
inflight = state.leases:inflightOf(config.name),
maxConcurrency = config.maxConcurrency,
requestsUsed = requestsBooked(source.rules, source.gates, clock),
tokensUsed = tokensBooked(source.rules, source.gates, clock),
coolingMs = cooldownWaitMs(source.cooldown, clock.nowMs),
dead = breaker.dead,
lastError = source.lastError,
passedOver = usualRefusal(state, source, clock),
adaptive = describeAdaptive(state, source, clock.nowMs)
}
end
knownOrNull = function(value)
local ____temp_14
if value == 0 then
____temp_14 = nil
else
____temp_14 = value
end
return ____temp_14
end
finiteOrNull = function(value) return (value - value == 0) and value or nil end
return {describeScope = describeScope, describeSource = describeSource}
end
____later["repair"] = function()
local dropOtherType, dropFields, unpacked, allUnpacked, stateCheck, isPackedSource, isPacked, isPart, isAlike, isLike, startsLike, reviseLeases, WORKER_TYPES, SIZE_TYPES, repair
local ____from = ____need("lualib_bundle")
local __TS__ArrayMap = ____from.__TS__ArrayMap
local __TS__ArrayConcat = ____from.__TS__ArrayConcat
local __TS__New = ____from.__TS__New
local __TS__ArrayEvery = ____from.__TS__ArrayEvery
local ____from = ____need("domain.leases")
local leaseEndMs = ____from.leaseEndMs
local ____from = ____need("domain.scope-state")
local newScopeState = ____from.newScopeState
local ____from = ____need("common-limits")
local areLimits = ____from.areLimits
local ____from = ____need("keys")
local GRANTS_KEY = ____from.GRANTS_KEY
local STATE_KEY = ____from.STATE_KEY
local ____from = ____need("layout")
local flattenScope = ____from.flattenScope
local packedList = ____from.packedList
local ____from = ____need("lease-layout")
local LEASE_TYPES = ____from.LEASE_TYPES
local flattenLease = ____from.flattenLease
local ____from = ____need("lease-store")
local LeaseStore = ____from.LeaseStore
local score = ____from.score
local unpackedLease = ____from.unpackedLease
local ____from = ____need("scope-clock")
local scopeClock = ____from.scopeClock
local ____from = ____need("size-store")
local SizeStore = ____from.SizeStore
local ____from = ____need("source-layout")
local judgedValues = ____from.judgedValues
local learnedValues = ____from.learnedValues
local troubleValues = ____from.troubleValues
function dropOtherType(key, wanted)
local ____redis_call_result_1 = redis.call("TYPE", key)
local ok = ____redis_call_result_1.ok
if ok == wanted or ok == "none" then
return 0
end
redis.call("DEL", key)
return 1
end
function dropFields(key, isGood)
local stored = redis.call("HGETALL", key)
local dropped = 0
do
local at = 0
while at < #stored do
do
local __continue16
repeat
if isGood(stored[at + 1], stored[at + 1 + 1]) then
__continue16 = true
break
end
redis.call("HDEL", key, stored[at + 1])
dropped = dropped + 1
__continue16 = true
until true
if not __continue16 then
break
end
end
at = at + 2
end
end
return dropped
end
function unpacked(text)
local value
pcall(function()
value = cmsgpack.unpack(text)
end)
return value
end
function allUnpacked(text)
local values = {pcall(cmsgpack.unpack, text)}
return table.remove(values, 1) == true and values or nil
end
function stateCheck(setup, nowMs, leases)
local sizes = __TS__New(SizeStore, "")
local state = newScopeState(
setup,
nowMs,
leases,
function(model) return sizes:bookOf(model) end
)
return function(field, text)
if field == "@" then
return true
end
if field == "~~" then
return isLike(
unpacked(text),
{"string", "number"}
)
end
if field == "~" then
return areLimits(unpacked(text))
end
if field == "*" then
return isPacked(
unpacked(text),
flattenScope(state)
)
end
local source = state.sources:get(field)
return source == nil or isPackedSource(
allUnpacked(text),
source
)
end
end
function isPackedSource(values, source)
if not isPacked(
values,
judgedValues(source, "", "")
) then
return false
end
local learned = unpacked(values[1 + 1])
local trouble = unpacked(values[2 + 1])
return isPart(
learned,
learnedValues(source)
) and isPart(
trouble,
troubleValues(source)
)
end
function isPacked(values, example)
if type(values) ~= "table" then
return false
end
local packed = values
local more = #packed - #example
return packed[1] == 3 and more <= 4 and isPart(packed, example)
end
function isPart(values, example)
if type(values) ~= "table" then
return false
end
local packed = values
if #packed < #example then
return false
end
local types = __TS__ArrayMap(
example,
function(____, value) return type(value) end
)
return startsLike(packed, types) and __TS__ArrayEvery(
example,
function(____, value, at) return isAlike(packed[at + 1], value) end
)
end
function isAlike(value, example)
if type(example) ~= "table" then
return true
end
local list = value
local known = example
return (#known == 0 or #list == #known) and __TS__ArrayEvery(
list,
function(____, item) return type(item) == "number" and not (item ~= item) end
)
end
function isLike(values, types)
return type(values) == "table" and startsLike(values, types)
end
function startsLike(values, types)
do
local at = 0
while at < #types do
local value = values[at + 1]
if type(value) ~= types[at + 1] or (value ~= value) then
return false
end
at = at + 1
end
end
return true
end
function reviseLeases(prefix, names, leaseTtlMs, nowMs, ttlMs)
local all = prefix .. "l"
local grants = prefix .. GRANTS_KEY
local latest = score((math.ceil(nowMs + leaseTtlMs)))
local revised = 0
for ____, key in ipairs(__TS__ArrayConcat(
{all},
__TS__ArrayMap(
names,
function(____, name) return prefix .. (("l" .. ":") .. name) end
)
)) do
local ____list = redis.call("ZRANGEBYSCORE", key, "(" .. latest, "+inf")
for ____at = 1, #____list do
local leaseId = ____list[____at]
redis.call("ZADD", key, latest, leaseId)
revised = revised + 1
end
end
local stored = redis.call("HGETALL", grants)
do
local at = 0
while at < #stored do
do
local __continue52
repeat
local leaseId = stored[at + 1]
local lease = unpackedLease(leaseId, stored[at + 1 + 1])
if lease == nil then
__continue52 = true
break
end
local latestMs = leaseEndMs(nowMs, lease.grant.leaseTtlMs)
if lease.expiresAtMs > latestMs then
lease.expiresAtMs = latestMs
redis.call(
"HSET",
grants,
leaseId,
(packedList(flattenLease(lease)))
)
revised = revised + 1
end
local own = prefix .. (("l" .. ":") .. lease.grant.source)
local ____list = {all, own}
for ____at = 1, #____list do
local key = ____list[____at]
redis.call(
"ZADD",
key,
score(lease.expiresAtMs),
leaseId
)
redis.call("PEXPIRE", key, ttlMs)
end
__continue52 = true
until true
if not __continue52 then
break
end
end
at = at + 2
end
end
return revised
end
function repair(prefix, setup, server, ttlMs)
local names = __TS__ArrayMap(
setup.sources,
function(____, ____bindingPattern0)
local name
name = ____bindingPattern0.name
return name
end
)
local dropped = 0
local ____list = {STATE_KEY, GRANTS_KEY, "w", "est"}
for ____at = 1, #____list do
local key = ____list[____at]
dropped = dropped + dropOtherType(prefix .. key, "hash")
end
for ____, key in ipairs(__TS__ArrayConcat(
{"l"},
__TS__ArrayMap(
names,
function(____, name) return (("l" .. ":") .. name) end
)
)) do
dropped = dropped + dropOtherType(prefix .. key, "zset")
end
local clock = redis.call("HGET", prefix .. STATE_KEY, "@")
local ____scopeClock_result_0 = scopeClock(
server,
type(clock) == "string" and clock or nil
)
local nowMs = ____scopeClock_result_0.nowMs
dropped = dropped + dropFields(
prefix .. STATE_KEY,
stateCheck(
setup,
nowMs,
__TS__New(LeaseStore, prefix, nowMs, names)
)
)
dropped = dropped + dropFields(
prefix .. "w",
function(_, text) return isLike(
unpacked(text),
WORKER_TYPES
) end
)
dropped = dropped + dropFields(
prefix .. "est",
function(_, text) return isLike(
unpacked(text),
SIZE_TYPES
) end
)
dropped = dropped + dropFields(
prefix .. GRANTS_KEY,
function(_, text) return isLike(
allUnpacked(text),
LEASE_TYPES
) end
)
return dropped + reviseLeases(
prefix,
names,
setup.leaseTtlMs,
nowMs,
ttlMs
)
end
WORKER_TYPES = {"number", "boolean", "number", "number"}
SIZE_TYPES = {
"number",
"number",
"number",
"number",
"number"
}
return {repair = repair}
end
do
local __TS__Symbol, Symbol, __TS__Iterator, Map
local function __TS__StringStartsWith(self, searchString, position)
if position == nil or position < 0 then
position = 0
end
return string.sub(self, position + 1, #searchString + position) == searchString
end
local function __TS__ObjectAssign(target, ...)
local sources = {...}
for i = 1, #sources do
local source = sources[i]
if type(source) == "table" then
for key in pairs(source) do
target[key] = source[key]
end
end
end
return target
end
local function __TS__StringAccess(self, index)
if index >= 0 and index < #self then
return string.sub(self, index + 1, index + 1)
end
end
do
local symbolMetatable = {__tostring = function(self)
return ("Symbol(" .. (self.description or "")) .. ")"
end}
function __TS__Symbol(description)
return setmetatable({description = description}, symbolMetatable)
end
Symbol = {
asyncDispose = __TS__Symbol("Symbol.asyncDispose"),
dispose = __TS__Symbol("Symbol.dispose"),
iterator = __TS__Symbol("Symbol.iterator"),
hasInstance = __TS__Symbol("Symbol.hasInstance"),
species = __TS__Symbol("Symbol.species"),
toStringTag = __TS__Symbol("Symbol.toStringTag")
}
end
do
local function iteratorGeneratorStep(self)
local co = self.____coroutine
local status, value = coroutine.resume(co)
if not status then
error(value, 0)
end
if coroutine.status(co) == "dead" then
return
end
return true, value
end
local function iteratorIteratorStep(self)
local result = self:next()
if result.done then
return
end
return true, result.value
end
local function iteratorStringStep(self, index)
index = index + 1
if index > #self then
return
end
return index, string.sub(self, index, index)
end
function __TS__Iterator(iterable)
if type(iterable) == "string" then
return iteratorStringStep, iterable, 0
elseif iterable.____coroutine ~= nil then
return iteratorGeneratorStep, iterable
elseif iterable[Symbol.iterator] then
local iterator = iterable[Symbol.iterator](iterable)
return iteratorIteratorStep, iterator
else
return ipairs(iterable)
end
end
end
local __TS__Unpack = table.unpack or unpack
local function __TS__Spread(iterable)
local arr = {}
if type(iterable) == "string" then
for i = 0, #iterable - 1 do
arr[i + 1] = __TS__StringAccess(iterable, i)
end
else
local len = 0
for ____, item in __TS__Iterator(iterable) do
len = len + 1
arr[len] = item
end
end
return __TS__Unpack(arr)
end
local function __TS__ArrayMap(self, callbackfn, thisArg)
local result = {}
for i = 1, #self do
result[i] = callbackfn(thisArg, self[i], i - 1, self)
end
return result
end
local function __TS__MathTrunc(val)
if not (val - val == 0) or val == 0 then
return val
end
return val > 0 and math.floor(val) or math.ceil(val)
end
local function __TS__ArraySort(self, compareFn)
if compareFn ~= nil then
table.sort(
self,
function(a, b) return compareFn(nil, a, b) < 0 end
)
else
table.sort(self)
end
return self
end
local function __TS__ArrayIndexOf(self, searchElement, fromIndex)
if fromIndex == nil then
fromIndex = 0
end
local len = #self
if len == 0 then
return -1
end
if fromIndex >= len then
return -1
end
if fromIndex < 0 then
fromIndex = len + fromIndex
if fromIndex < 0 then
fromIndex = 0
end
end
for i = fromIndex + 1, len do
if self[i] == searchElement then
return i - 1
end
end
return -1
end
local function __TS__ArrayFindIndex(self, callbackFn, thisArg)
for i = 1, #self do
if callbackFn(thisArg, self[i], i - 1, self) then
return i - 1
end
end
return -1
end
local function __TS__ArrayIncludes(self, searchElement, fromIndex)
if fromIndex == nil then
fromIndex = 0
end
local len = #self
local k = fromIndex
if fromIndex < 0 then
k = len + fromIndex
end
if k < 0 then
k = 0
end
for i = k + 1, len do
if self[i] == searchElement then
return true
end
end
return false
end
local function __TS__Class(self)
local c = {prototype = {}}
c.prototype.__index = c.prototype
c.prototype.constructor = c
return c
end
do
Map = __TS__Class()
Map.name = "Map"
function Map.prototype.____constructor(self, entries)
self[Symbol.toStringTag] = "Map"
self.items = {}
self.size = 0
self.nextKey = {}
self.previousKey = {}
if entries == nil then
return
end
local iterable = entries
if iterable[Symbol.iterator] then
local iterator = iterable[Symbol.iterator](iterable)
while true do
local result = iterator:next()
if result.done then
break
end
local value = result.value
self:set(value[1], value[2])
end
else
local array = entries
local ____list = array
for ____at = 1, #____list do
local kvp = ____list[____at]
self:set(kvp[1], kvp[2])
end
end
end
function Map.prototype.clear(self)
self.items = {}
self.nextKey = {}
self.previousKey = {}
self.firstKey = nil
self.lastKey = nil
self.size = 0
end
function Map.prototype.delete(self, key)
local contains = self:has(key)
if contains then
self.size = self.size - 1
local next = self.nextKey[key]
local previous = self.previousKey[key]
if next ~= nil and previous ~= nil then
self.nextKey[previous] = next
self.previousKey[next] = previous
elseif next ~= nil then
self.firstKey = next
self.previousKey[next] = nil
elseif previous ~= nil then
self.lastKey = previous
self.nextKey[previous] = nil
else
self.firstKey = nil
self.lastKey = nil
end
self.nextKey[key] = nil
self.previousKey[key] = nil
end
self.items[key] = nil
return contains
end
function Map.prototype.forEach(self, callback)
for ____, key in __TS__Iterator(self:keys()) do
callback(nil, self.items[key], key, self)
end
end
function Map.prototype.get(self, key)
return self.items[key]
end
function Map.prototype.has(self, key)
return self.nextKey[key] ~= nil or self.lastKey == key
end
function Map.prototype.set(self, key, value)
local isNewValue = not self:has(key)
if isNewValue then
self.size = self.size + 1
end
self.items[key] = value
if self.firstKey == nil then
self.firstKey = key
self.lastKey = key
elseif isNewValue then
self.nextKey[self.lastKey] = key
self.previousKey[key] = self.lastKey
self.lastKey = key
end
return self
end
Map.prototype[Symbol.iterator] = function(self)
return self:entries()
end
function Map.prototype.entries(self)
local function getFirstKey()
return self.firstKey
end
local items = self.items
local nextKey = self.nextKey
local key
local started = false
return {
[Symbol.iterator] = function(self)
return self
end,
next = function(self)
if not started then
started = true
key = getFirstKey(nil)
else
key = nextKey[key]
end
return {done = not key, value = {key, items[key]}}
end
}
end
function Map.prototype.keys(self)
local function getFirstKey()
return self.firstKey
end
local nextKey = self.nextKey
local key
local started = false
return {
[Symbol.iterator] = function(self)
return self
end,
next = function(self)
if not started then
started = true
key = getFirstKey(nil)
else
key = nextKey[key]
end
return {done = not key, value = key}
end
}
end
function Map.prototype.values(self)
local function getFirstKey()
return self.firstKey
end
local items = self.items
local nextKey = self.nextKey
local key
local started = false
return {
[Symbol.iterator] = function(self)
return self
end,
next = function(self)
if not started then
started = true
key = getFirstKey(nil)
else
key = nextKey[key]
end
return {done = not key, value = items[key]}
end
}
end
Map[Symbol.species] = Map
end
local function __TS__New(target, ...)
local instance = setmetatable({}, target.prototype)
instance:____constructor(...)
return instance
end
local function __TS__StringIncludes(self, searchString, position)
if not position then
position = 1
else
position = position + 1
end
local index = string.find(self, searchString, position, true)
return index ~= nil
end
local function __TS__ArraySetLength(self, length)
if length < 0 or length ~= length or length == 1e999 or math.floor(length) ~= length then
error(
"invalid array length: " .. tostring(length),
0
)
end
for i = length + 1, #self do
self[i] = nil
end
return length
end
local function __TS__CountVarargs(...)
return select("#", ...)
end
local function __TS__ArraySplice(self, ...)
local args = {...}
local len = #self
local actualArgumentCount = __TS__CountVarargs(...)
local start = args[1]
local deleteCount = args[2]
if start < 0 then
start = len + start
if start < 0 then
start = 0
end
elseif start > len then
start = len
end
local itemCount = actualArgumentCount - 2
if itemCount < 0 then
itemCount = 0
end
local actualDeleteCount
if actualArgumentCount == 0 then
actualDeleteCount = 0
elseif actualArgumentCount == 1 then
actualDeleteCount = len - start
else
actualDeleteCount = deleteCount or 0
if actualDeleteCount < 0 then
actualDeleteCount = 0
end
if actualDeleteCount > len - start then
actualDeleteCount = len - start
end
end
local out = {}
for k = 1, actualDeleteCount do
local from = start + k
if self[from] ~= nil then
out[k] = self[from]
end
end
if itemCount < actualDeleteCount then
for k = start + 1, len - actualDeleteCount do
local from = k + actualDeleteCount
local to = k + itemCount
if self[from] then
self[to] = self[from]
else
self[to] = nil
end
end
for k = len - actualDeleteCount + itemCount + 1, len do
self[k] = nil
end
elseif itemCount > actualDeleteCount then
for k = len - actualDeleteCount, start + 1, -1 do
local from = k + actualDeleteCount
local to = k + itemCount
if self[from] then
self[to] = self[from]
else
self[to] = nil
end
end
end
local j = start + 1
for i = 3, actualArgumentCount do
self[j] = args[i]
j = j + 1
end
for k = #self, len - actualDeleteCount + itemCount + 1, -1 do
self[k] = nil
end
return out
end
local function __TS__ArrayFilter(self, callbackfn, thisArg)
local result = {}
local len = 0
for i = 1, #self do
if callbackfn(thisArg, self[i], i - 1, self) then
len = len + 1
result[len] = self[i]
end
end
return result
end
local function __TS__ArraySome(self, callbackfn, thisArg)
for i = 1, #self do
if callbackfn(thisArg, self[i], i - 1, self) then
return true
end
end
return false
end
local function __TS__ArrayFind(self, predicate, thisArg)
for i = 1, #self do
local elem = self[i]
if predicate(thisArg, elem, i - 1, self) then
return elem
end
end
return nil
end
local function __TS__ArrayPush(self, ...)
local items = {...}
local len = #self
for i = 1, #items do
len = len + 1
self[len] = items[i]
end
return len
end
local function __TS__ArrayConcat(self, ...)
local items = {...}
local result = {}
local len = 0
for i = 1, #self do
len = len + 1
result[len] = self[i]
end
for i = 1, #items do
local item = items[i]
if (type(item) == "table" and (item[1] ~= nil or next(item) == nil)) then
for j = 1, #item do
len = len + 1
result[len] = item[j]
end
else
len = len + 1
result[len] = item
end
end
return result
end
local function __TS__ArrayEvery(self, callbackfn, thisArg)
for i = 1, #self do
if not callbackfn(thisArg, self[i], i - 1, self) then
return false
end
end
return true
end
local function __TS__ArraySlice(self, first, last)
local len = #self
first = first or 0
if first < 0 then
first = len + first
if first < 0 then
first = 0
end
else
if first > len then
first = len
end
end
last = last or len
if last < 0 then
last = len + last
if last < 0 then
last = 0
end
else
if last > len then
last = len
end
end
local out = {}
first = first + 1
last = last + 1
local n = 1
while first < last do
out[n] = self[first]
first = first + 1
n = n + 1
end
return out
end
local function __TS__SparseArrayNew(...)
local sparseArray = {...}
sparseArray.sparseLength = __TS__CountVarargs(...)
return sparseArray
end
local function __TS__SparseArrayPush(sparseArray, ...)
local args = {...}
local argsLen = __TS__CountVarargs(...)
local listLen = sparseArray.sparseLength
for i = 1, argsLen do
sparseArray[listLen + i] = args[i]
end
sparseArray.sparseLength = listLen + argsLen
end
local function __TS__SparseArraySpread(sparseArray)
local _unpack = unpack or table.unpack
return _unpack(sparseArray, 1, sparseArray.sparseLength)
end
____loaded["lualib_bundle"] = {__TS__MathTrunc = __TS__MathTrunc, __TS__ObjectAssign = __TS__ObjectAssign, __TS__ArraySort = __TS__ArraySort, __TS__ArrayFindIndex = __TS__ArrayFindIndex, __TS__ArrayIncludes = __TS__ArrayIncludes, Map = Map, __TS__New = __TS__New, __TS__Iterator = __TS__Iterator, __TS__ArrayIndexOf = __TS__ArrayIndexOf, __TS__Spread = __TS__Spread, __TS__ArrayMap = __TS__ArrayMap, __TS__ArraySetLength = __TS__ArraySetLength, __TS__StringIncludes = __TS__StringIncludes, __TS__ArrayFilter = __TS__ArrayFilter, __TS__ArraySome = __TS__ArraySome, __TS__ArraySplice = __TS__ArraySplice, __TS__ArrayFind = __TS__ArrayFind, __TS__ArrayPush = __TS__ArrayPush, __TS__Class = __TS__Class, __TS__ArraySlice = __TS__ArraySlice, __TS__ArrayConcat = __TS__ArrayConcat, __TS__ArrayEvery = __TS__ArrayEvery, __TS__SparseArrayNew = __TS__SparseArrayNew, __TS__SparseArrayPush = __TS__SparseArrayPush, __TS__SparseArraySpread = __TS__SparseArraySpread, __TS__StringStartsWith = __TS__StringStartsWith}
end
do
local presentState, nextState, seededRandom, draw, jittered
local ____from = ____loaded["lualib_bundle"]
local __TS__MathTrunc = ____from.__TS__MathTrunc
function presentState(____bindingPattern0)
local state
local seed
seed = ____bindingPattern0.seed
state = ____bindingPattern0.state
return state == 0 and math.abs(__TS__MathTrunc(seed)) % (2147483647 - 1) + 1 or state
end
function nextState(state)
return state * 16807 % 2147483647
end
function seededRandom(seed)
return {seed = seed, state = 0}
end
function draw(random)
random.state = nextState(presentState(random))
return random.state / 2147483647
end
function jittered(value, share, random)
return value * (1 - share + 2 * share * draw(random))
end
____loaded["domain.random"] = {jittered = jittered, presentState = presentState, seededRandom = seededRandom}
end
do
local ownCooldownMs, noCooldown, coolDown, endCooldown, cooldownWaitMs, noteGrant
local ____from = ____loaded["domain.random"]
local jittered = ____from.jittered
function ownCooldownMs(limitedInARow, random)
local lengthMs = 400
do
local n = 1
while n < limitedInARow and lengthMs < 15000 do
lengthMs = lengthMs * 2
n = n + 1
end
end
return jittered(
(lengthMs < 15000 and lengthMs or 15000),
0.25,
random
)
end
function noCooldown()
return {coolUntilMs = 0, limitedInARow = 0, limitedAtMs = 0, nextGrantMs = 0}
end
function coolDown(c, nowMs, sentAtMs, retryAfterMs, random)
if (c.limitedInARow > 0 and sentAtMs <= c.limitedAtMs) then
if retryAfterMs == nil then
return
end
else
c.limitedInARow = c.limitedInARow + 1
c.limitedAtMs = nowMs
end
local lengthMs = retryAfterMs == nil and ownCooldownMs(c.limitedInARow, random) or retryAfterMs
c.coolUntilMs = math.max(
c.coolUntilMs,
nowMs + math.min((10 * 60000), lengthMs)
)
end
function endCooldown(c)
c.limitedInARow = 0
c.nextGrantMs = 0
end
function cooldownWaitMs(c, nowMs)
return math.max(
0,
(c.nextGrantMs > c.coolUntilMs and c.nextGrantMs or c.coolUntilMs) - nowMs
)
end
function noteGrant(c, nowMs)
if c.limitedInARow > 0 then
c.nextGrantMs = nowMs + 100
end
end
____loaded["domain.cooldown"] = {cooldownWaitMs = cooldownWaitMs, coolDown = coolDown, endCooldown = endCooldown, noCooldown = noCooldown, noteGrant = noteGrant}
end
do
local ceilTo, requestBurst, requestRate, tokenRate, smoothWaitMs, smoothCorrect, smoothBooked
function ceilTo(value, perMs)
return math.ceil(value * perMs) / perMs
end
function requestBurst(limits)
local ____limits_0 = limits
local rpm = ____limits_0.rpm
if not limits.strict then
return math.max(4, limits.burstS * rpm / 60)
end
return math.max(
1,
math.min(
math.max(4, rpm / 60),
rpm / 10
)
)
end
function requestRate(limits)
if limits.rpm == 0 then
return nil
end
local burst = requestBurst(limits)
local windowMs = limits.strict and 60500 or 60000
local units = limits.strict and limits.rpm - burst + 1 or limits.rpm
local intervalMs = ceilTo(windowMs / units, 1000)
return {intervalMs = intervalMs, toleranceMs = (burst - 1) * intervalMs}
end
function tokenRate(limits)
if limits.tpm == 0 then
return nil
end
local burst = (limits.strict and limits.tpm / 60 or limits.burstTokensS * limits.tpm / 60)
local windowMs = limits.strict and 60500 or 60000
local units = limits.strict and limits.tpm - burst or limits.tpm
local intervalMs = ceilTo(windowMs / units, 1000000)
return {intervalMs = intervalMs, toleranceMs = burst * intervalMs}
end
function smoothWaitMs(rate, tatMs, nowMs)
local waitMs = tatMs - rate.toleranceMs - nowMs
return waitMs < 0.001 and 0 or waitMs
end
function smoothCorrect(rate, tatMs, nowMs, units)
if units > 0 then
return (tatMs > nowMs and tatMs or nowMs) + units * rate.intervalMs
end
return math.max(tatMs + units * rate.intervalMs, nowMs - rate.toleranceMs)
end
function smoothBooked(rate, tatMs, nowMs)
return math.max(
0,
math.floor((tatMs - nowMs) / rate.intervalMs + 0.5)
)
end
____loaded["domain.gates.smooth"] = {requestRate = requestRate, smoothBooked = smoothBooked, smoothCorrect = smoothCorrect, smoothWaitMs = smoothWaitMs, tokenRate = tokenRate}
end
do
local windowIdOf, windowWaitMs, rollWindow
function windowIdOf(wallMs, counts)
local id = math.floor(wallMs / 60000)
return id == counts.windowId - 1 and counts.windowId or id
end
function windowWaitMs(wallMs, windowId)
return math.max(1, (windowId + 1) * 60000 - wallMs)
end
function rollWindow(counts, windowId)
if counts.windowId == windowId then
return
end
counts.windowId = windowId
counts.windowRequests = 0
counts.windowTokens = 0
end
____loaded["domain.gates.window"] = {rollWindow = rollWindow, windowIdOf = windowIdOf, windowWaitMs = windowWaitMs}
end
do
local gateRules, emptyGateRecord, requestWaitMs, tokenWaitMs, takeFromGates, settleGates, requestsBooked, tokensBooked
local ____from = ____loaded["domain.gates.smooth"]
local requestRate = ____from.requestRate
local smoothBooked = ____from.smoothBooked
local smoothCorrect = ____from.smoothCorrect
local smoothWaitMs = ____from.smoothWaitMs
local tokenRate = ____from.tokenRate
local ____from = ____loaded["domain.gates.window"]
local rollWindow = ____from.rollWindow
local windowIdOf = ____from.windowIdOf
local windowWaitMs = ____from.windowWaitMs
function gateRules(limits)
return {
limits = limits,
requests = requestRate(limits),
tokens = tokenRate(limits)
}
end
function emptyGateRecord()
return {
windowId = -1,
windowRequests = 0,
windowTokens = 0,
requestTatMs = 0,
tokenTatMs = 0,
newestGrant = ""
}
end
function requestWaitMs(rules, record, clock)
local ____rules_0 = rules
local limits = ____rules_0.limits
local requests = ____rules_0.requests
if requests == nil then
return 0
end
if limits.limitRule == "smooth" then
return smoothWaitMs(requests, record.requestTatMs, clock.nowMs)
end
local id = windowIdOf(clock.wallMs, record)
local used = id == record.windowId and record.windowRequests or 0
return used >= limits.rpm and windowWaitMs(clock.wallMs, id) or 0
end
function tokenWaitMs(rules, record, clock, tokens)
local ____rules_1 = rules
local limits = ____rules_1.limits
local rate = ____rules_1.tokens
if rate == nil then
return 0
end
if limits.limitRule == "smooth" then
return smoothWaitMs(rate, record.tokenTatMs, clock.nowMs)
end
local id = windowIdOf(clock.wallMs, record)
local used = id == record.windowId and record.windowTokens or 0
return used + tokens > limits.tpm and windowWaitMs(clock.wallMs, id) or 0
end
function takeFromGates(rules, record, clock, tokens, leaseId)
record.newestGrant = leaseId
if rules.limits.limitRule == "window" then
local id = windowIdOf(clock.wallMs, record)
rollWindow(record, id)
record.windowRequests = record.windowRequests + 1
record.windowTokens = record.windowTokens + tokens
return id
end
if rules.requests ~= nil then
record.requestTatMs = ((record.requestTatMs > clock.nowMs and record.requestTatMs or clock.nowMs) + 1 * rules.requests.intervalMs)
end
if rules.tokens ~= nil then
record.tokenTatMs = ((record.tokenTatMs > clock.nowMs and record.tokenTatMs or clock.nowMs) + tokens * rules.tokens.intervalMs)
end
return nil
end
function settleGates(rules, record, clock, s)
if rules.limits.limitRule == "window" then
if s.windowId == nil or s.windowId ~= record.windowId then
return
end
record.windowTokens = math.max(0, record.windowTokens + s.actualTokens - s.reservedTokens)
if s.returnRequest then
record.windowRequests = math.max(0, record.windowRequests - 1)
end
return
end
if rules.tokens ~= nil and s.actualTokens ~= s.reservedTokens then
local units = s.actualTokens - s.reservedTokens
record.tokenTatMs = smoothCorrect(rules.tokens, record.tokenTatMs, clock.nowMs, units)
end
if s.returnRequest and rules.requests ~= nil and record.newestGrant == s.leaseId then
record.requestTatMs = smoothCorrect(rules.requests, record.requestTatMs, clock.nowMs, -1)
record.newestGrant = ""
end
end
function requestsBooked(rules, record, clock)
if rules.limits.limitRule == "window" then
return record.windowId == windowIdOf(clock.wallMs, record) and record.windowRequests or 0
end
return rules.requests == nil and 0 or smoothBooked(rules.requests, record.requestTatMs, clock.nowMs)
end
function tokensBooked(rules, record, clock)
if rules.limits.limitRule == "window" then
return record.windowId == windowIdOf(clock.wallMs, record) and record.windowTokens or 0
end
return rules.tokens == nil and 0 or smoothBooked(rules.tokens, record.tokenTatMs, clock.nowMs)
end
____loaded["domain.gates.gate"] = {requestWaitMs = requestWaitMs, tokenWaitMs = tokenWaitMs, requestsBooked = requestsBooked, tokensBooked = tokensBooked, gateRules = gateRules, settleGates = settleGates, emptyGateRecord = emptyGateRecord, takeFromGates = takeFromGates}
end
do
local decayFactor
local TABLE = {1}
local function fillTo(step)
do
local next = #TABLE
while next <= step do
TABLE[#TABLE + 1] = TABLE[next] * 0.9892280131939755
next = next + 1
end
end
end
function decayFactor(elapsedMs, halfLifeMs)
if not (elapsedMs > 0) then
return 1
end
local halfLives = elapsedMs / halfLifeMs
if halfLives >= 60 then
return 0
end
local whole = math.floor(halfLives)
local position = (halfLives - whole) * 64
local step = math.floor(position)
if step + 1 >= #TABLE then
fillTo(step + 1)
end
local low = TABLE[step + 1]
local factor = low + (TABLE[step + 1 + 1] - low) * (position - step)
do
local n = 0
while n < whole do
factor = factor / 2
n = n + 1
end
end
return factor
end
____loaded["domain.scheduling.decay"] = {decayFactor = decayFactor}
end
do
local weightOf, FAILURE_WEIGHT, SUCCESS_WEIGHT, noEvidence, addEvidence, restartEvidence
local ____from = ____loaded["domain.scheduling.decay"]
local decayFactor = ____from.decayFactor
function weightOf(kind, poolFailShare)
local goodShare = math.min(0.4, 1.5 * poolFailShare)
local isUsual = goodShare <= 0.05
local failure = isUsual and FAILURE_WEIGHT or math.log(0.5 / goodShare)
local success = isUsual and SUCCESS_WEIGHT or math.log((1 - 0.5) / (1 - goodShare))
repeat
local ____switch11 = kind
local ____cond11 = ____switch11 == "failure" or ____switch11 == "hang"
if ____cond11 then
return failure
end
____cond11 = ____cond11 or ____switch11 == "slow_success"
if ____cond11 then
return 0.5 * failure
end
____cond11 = ____cond11 or ____switch11 == "double_success"
if ____cond11 then
return 2 * success
end
do
return success
end
until true
end
function noEvidence()
return {score = 0, atMs = 0, fails = 0, hangs = 0}
end
function addEvidence(e, kind, poolFailShare, nowMs)
local score = (e.score == 0 and 0 or e.score * decayFactor(nowMs - e.atMs, 60000)) + weightOf(kind, poolFailShare)
e.atMs = nowMs
e.score = (score > 0 and score or 0)
if e.score == 0 then
e.fails = 0
e.hangs = 0
end
if kind ~= "failure" and kind ~= "hang" then
return false
end
e.fails = e.fails + 1
if kind == "hang" then
e.hangs = e.hangs + 1
end
return e.score >= 9.2
end
function restartEvidence(e, onProbation, nowMs)
e.score = onProbation and (9.2 / 2) or 0
e.atMs = nowMs
e.fails = 0
e.hangs = 0
end
FAILURE_WEIGHT = math.log(0.5 / 0.05)
SUCCESS_WEIGHT = math.log((1 - 0.5) / (1 - 0.05))
____loaded["domain.scheduling.evidence"] = {addEvidence = addEvidence, restartEvidence = restartEvidence, noEvidence = noEvidence}
end
do
local firstTokenDueMs, hedgeAfterMs
function firstTokenDueMs(facts)
if facts.ownTtftMs == 0 then
return nil
end
local ttftMs = (facts.poolTtftMs > facts.ownTtftMs and facts.poolTtftMs or facts.ownTtftMs)
local size = (facts.promptTokens == nil or facts.meanPromptTokens == 0) and 1 or math.max(1, facts.promptTokens / facts.meanPromptTokens)
local dueMs = math.max(3000, 4.7 * ttftMs * size)
local ____temp_0
if facts.ttftTimeoutMs > 0 and dueMs >= facts.ttftTimeoutMs then
____temp_0 = nil
else
____temp_0 = dueMs
end
return ____temp_0
end
function hedgeAfterMs(poolTtftMs)
local ____temp_1
if poolTtftMs == 0 then
____temp_1 = nil
else
____temp_1 = math.max(1000, 2.2 * poolTtftMs)
end
return ____temp_1
end
____loaded["domain.scheduling.first-token"] = {firstTokenDueMs = firstTokenDueMs, hedgeAfterMs = hedgeAfterMs}
end
do
local decay, moved, newHealth, noteSuccess, noteFailure, noteFirstToken, successShare, failureShare
local ____from = ____loaded["domain.scheduling.decay"]
local decayFactor = ____from.decayFactor
function decay(h, nowMs)
local left = decayFactor(nowMs - h.atMs, 60000)
h.successes = h.successes * left
h.failures = h.failures * left
h.atMs = nowMs
end
function moved(average, sample, alpha)
return average == 0 and sample or average + alpha * (sample - average)
end
function newHealth()
return {
successes = 0,
failures = 0,
atMs = 0,
ttftMs = 0,
tpotMs = 0,
failMs = 0,
durationMs = 0,
samples = 0,
lastSuccessMs = 0
}
end
function noteSuccess(h, durationMs, tpotMs, nowMs)
decay(h, nowMs)
h.successes = h.successes + 1
h.samples = h.samples + 1
h.lastSuccessMs = nowMs
h.durationMs = (h.durationMs == 0 and durationMs or h.durationMs + 0.1 * (durationMs - h.durationMs))
if tpotMs ~= nil and tpotMs > 0 then
h.tpotMs = (h.tpotMs == 0 and tpotMs or h.tpotMs + 0.1 * (tpotMs - h.tpotMs))
end
end
function noteFailure(h, durationMs, nowMs)
decay(h, nowMs)
h.failures = h.failures + 1
h.failMs = (h.failMs == 0 and durationMs or h.failMs + 0.2 * (durationMs - h.failMs))
end
function noteFirstToken(h, ttftMs)
h.ttftMs = moved(h.ttftMs, ttftMs, ttftMs > h.ttftMs and 0.2 or 0.1)
end
function successShare(h, nowMs)
local left = decayFactor(nowMs - h.atMs, 60000)
return (h.successes * left + 9.5) / ((h.successes + h.failures) * left + 10)
end
function failureShare(h)
local all = h.successes + h.failures
return all < 1 and 0 or h.failures / all
end
____loaded["domain.scheduling.health"] = {failureShare = failureShare, successShare = successShare, noteFailure = noteFailure, noteFirstToken = noteFirstToken, noteSuccess = noteSuccess, newHealth = newHealth}
end
do
local neverCut, cubicValue, cut, resume
function neverCut()
return {wMax = 0, cutAtMs = 0, kMs = 20000}
end
function cubicValue(c, nowMs, linearPerS)
if c.wMax == 0 then
return 1e999
end
local sinceMs = math.max(0, nowMs - c.cutAtMs)
local x = (sinceMs - c.kMs) / c.kMs
local g = x < 0 and x * x * x or x + x * x * x
local cubic = 0.98 * c.wMax * (1 + (1 - 0.85) * g)
local back = math.min(0.85 * c.wMax + linearPerS * sinceMs / 1000, 0.98 * c.wMax)
local beyond = linearPerS * math.max(0, sinceMs - c.kMs) / 1000
return math.max(cubic, back + beyond)
end
function cut(c, level, nowMs, newsMs)
if newsMs == nil then
newsMs = 0
end
if c.wMax == 0 then
c.wMax = level
c.kMs = 20000
else
local isStable = math.abs(level - c.wMax) < 0.25 * c.wMax
c.kMs = isStable and math.max(
c.kMs,
math.min(1.5 * c.kMs, 120000)
) or 20000
c.wMax = level
end
c.kMs = math.max(c.kMs, 2 * newsMs)
c.cutAtMs = nowMs
end
function resume(c, level, nowMs)
c.wMax = level
c.kMs = 20000
c.cutAtMs = nowMs - c.kMs
end
____loaded["domain.scheduling.cubic"] = {resume = resume, cubicValue = cubicValue, cut = cut, neverCut = neverCut}
end
do
local newGoodput, noteAnswer, noteLetThrough, noteRefused, rateFloor, windowFloor
local ____from = ____loaded["domain.scheduling.decay"]
local decayFactor = ____from.decayFactor
function newGoodput()
return {
weight = 0,
atMs = 0,
firstAtMs = -1,
bestPerS = 0,
bestAtMs = 0,
granted = 0,
refused = 0
}
end
function noteAnswer(g, nowMs)
if g.firstAtMs < 0 then
g.firstAtMs = nowMs
end
g.weight = g.weight * decayFactor(nowMs - g.atMs, 20000) + 1
g.atMs = nowMs
local spanMs = nowMs - g.firstAtMs
if spanMs < 60000 then
return
end
local fullMs = 20000 / 0.6931471805599453 * (1 - decayFactor(spanMs, 20000))
local perS = g.weight * 1000 / fullMs
if perS <= (g.bestPerS == 0 and 0 or g.bestPerS * decayFactor(nowMs - g.bestAtMs, 600000)) then
return
end
g.bestPerS = perS
g.bestAtMs = nowMs
end
function noteLetThrough(g)
g.granted = g.granted + 1
if g.granted <= 60 then
return
end
g.granted = g.granted / 2
g.refused = g.refused / 2
end
function noteRefused(g)
g.refused = g.refused + 1
if g.refused < 3 or g.refused <= 0.25 * g.granted then
return
end
g.bestPerS = 0
g.weight = 0
g.firstAtMs = -1
end
function rateFloor(g, nowMs)
return 0.5 * (g.bestPerS == 0 and 0 or g.bestPerS * decayFactor(nowMs - g.bestAtMs, 600000))
end
function windowFloor(g, durationMs, nowMs)
return math.ceil((0.5 * (g.bestPerS == 0 and 0 or g.bestPerS * decayFactor(nowMs - g.bestAtMs, 600000))) * durationMs / 1000)
end
____loaded["domain.scheduling.goodput"] = {newGoodput = newGoodput, noteLetThrough = noteLetThrough, rateFloor = rateFloor, windowFloor = windowFloor, noteAnswer = noteAnswer, noteRefused = noteRefused}
end
do
local endRow, weighRare, begin, isStillNoise, forgetNoise, noNoise, noteCut, hearRefusal, tellOfNoise
local ____from = ____loaded["domain.scheduling.cubic"]
local resume = ____from.resume
function forgetNoise(n)
endRow(n)
n.rareCuts = 0
end
function endRow(n)
n.vainCuts = 0
n.attempts = 0
n.refusals = 0
n.usualGap = 0
end
function weighRare(n, shareOfCurve, gap)
if shareOfCurve < 0.25 and gap >= 30 then
n.rareCuts = n.rareCuts + 1
end
if shareOfCurve > 0.8 then
n.rareCuts = math.max(0, n.rareCuts - 1)
end
end
function begin(n, c, usualGap, nowMs)
forgetNoise(n)
n.usualGap = usualGap
resume(c, n.fullLevel, nowMs)
return true
end
function isStillNoise(n, gap, calmMs)
n.attempts = n.attempts + gap
n.refusals = n.refusals + 1
local isJudged = n.refusals >= 6
if calmMs > 120000 or isJudged and n.attempts < 0.4 * n.usualGap * n.refusals then
forgetNoise(n)
return false
end
if n.refusals >= 2 * 6 then
n.attempts = n.attempts / 2
n.refusals = n.refusals / 2
end
return true
end
function noNoise()
return {
vainCuts = 0,
rareCuts = 0,
fullLevel = 0,
attempts = 0,
refusals = 0,
usualGap = 0,
heardAttempts = 0,
heardAtMs = 0
}
end
function noteCut(n, level)
n.fullLevel = (level > n.fullLevel and level or n.fullLevel)
end
function hearRefusal(n, c, attempts, attemptMs, nowMs)
local gap = attempts - n.heardAttempts
local calmMs = nowMs - n.heardAtMs
n.heardAttempts = attempts
n.heardAtMs = nowMs
if c.wMax == 0 then
return false
end
if n.usualGap > 0 then
return isStillNoise(n, gap, calmMs)
end
local sinceCutMs = nowMs - c.cutAtMs
weighRare(n, sinceCutMs / c.kMs, gap)
if n.rareCuts >= 2 then
return begin(n, c, 75, nowMs)
end
if sinceCutMs >= 0.5 * c.kMs then
endRow(n)
n.fullLevel = n.fullLevel * 0.85
return false
end
n.attempts = n.attempts + gap
n.refusals = n.refusals + 1
if sinceCutMs >= attemptMs then
n.vainCuts = n.vainCuts + 1
end
if n.vainCuts < 4 and 0.85 * c.wMax > 0.35 * n.fullLevel then
return false
end
local usualGap = n.attempts / n.refusals
return usualGap >= 8 and begin(n, c, usualGap, nowMs)
end
function tellOfNoise(known, other, c, nowMs)
if known.usualGap >= 30 and other.usualGap == 0 and other.fullLevel > 0 then
begin(other, c, known.usualGap, nowMs)
end
end
____loaded["domain.scheduling.noise"] = {forgetNoise = forgetNoise, hearRefusal = hearRefusal, noNoise = noNoise, noteCut = noteCut, tellOfNoise = tellOfNoise}
end
do
local rateCap, intervalOf, countAdmitted, rollBuckets, cutRateFor, cutRate, cutWindowFor, windowLevel, pacedWindow, pacedRate, lowerLimit, measuredRate, cutWindowTo, newPacer, limitsInForce, pacedInterval, pacedWaitMs, notePacedGrant, cutFor, cutForHang, growStartWindow, emptyBurst, learnLimits, cutEarly
local ____from = ____loaded["lualib_bundle"]
local __TS__ObjectAssign = ____from.__TS__ObjectAssign
local ____from = ____loaded["domain.gates.smooth"]
local requestRate = ____from.requestRate
local smoothWaitMs = ____from.smoothWaitMs
local ____from = ____loaded["domain.scheduling.cubic"]
local cubicValue = ____from.cubicValue
local cut = ____from.cut
local neverCut = ____from.neverCut
local ____from = ____loaded["domain.scheduling.goodput"]
local newGoodput = ____from.newGoodput
local noteLetThrough = ____from.noteLetThrough
local rateFloor = ____from.rateFloor
local windowFloor = ____from.windowFloor
local ____from = ____loaded["domain.scheduling.noise"]
local forgetNoise = ____from.forgetNoise
local hearRefusal = ____from.hearRefusal
local noNoise = ____from.noNoise
local noteCut = ____from.noteCut
local tellOfNoise = ____from.tellOfNoise
function pacedWindow(p, limits, nowMs)
local cap = limits.maxConcurrency > 0 and limits.maxConcurrency or 512
if p.window.wMax == 0 then
return limits.maxConcurrency > 0 and cap or p.startWindow
end
local floor = windowFloor(p.goodput, p.attemptMs, nowMs)
local level = math.max(
cubicValue(p.window, nowMs, 0.1),
floor
)
return math.max(
1,
math.floor((cap < level and cap or level))
)
end
function pacedRate(p, limits, nowMs)
local cap = rateCap(p, limits)
local level = cubicValue(p.rate, nowMs, (1 / 60))
return math.min(
math.max(
level,
0.05,
rateFloor(p.goodput, nowMs)
),
cap
)
end
function rateCap(p, limits)
local rpm = lowerLimit(limits.rpm, p.learnedRpm)
return rpm == 0 and 1e999 or rpm / 60
end
function lowerLimit(a, b)
if a == 0 then
return b
end
return b == 0 and a or (b < a and b or a)
end
function intervalOf(p, limits, nowMs)
local rpm = pacedRate(p, limits, nowMs) * 60
if rpm < 2 then
return {intervalMs = 60000 / rpm, toleranceMs = 0}
end
return requestRate(__TS__ObjectAssign({}, limits, {rpm = rpm, strict = true}))
end
function countAdmitted(p, nowMs)
rollBuckets(p, nowMs)
if p.firstAdmittedMs < 0 then
p.firstAdmittedMs = nowMs
end
p.bucketCount = p.bucketCount + 1
p.admitted = p.admitted + 1
end
function rollBuckets(p, nowMs)
local bucket = math.floor(nowMs / 10000)
if bucket == p.bucket then
return
end
p.earlierCount = bucket == p.bucket + 1 and p.bucketCount or 0
p.bucketCount = 0
p.bucket = bucket
end
function measuredRate(p, nowMs)
rollBuckets(p, nowMs)
local share = nowMs / 10000 - p.bucket
local spanMs = math.min(
10000,
math.max(1000, nowMs - p.firstAdmittedMs)
)
return (p.bucketCount + p.earlierCount * (1 - share)) * 1000 / spanMs
end
function cutRateFor(p, limits, attempt, nowMs)
if not (not (p.rate.wMax ~= 0 and attempt.startedAtMs <= p.rate.cutAtMs) and nowMs - p.firstAdmittedMs >= 5000) then
return false
end
if hearRefusal(
p.rateNoise,
p.rate,
p.admitted,
p.attemptMs,
nowMs
) then
tellOfNoise(p.rateNoise, p.windowNoise, p.window, nowMs)
return false
end
cutRate(p, limits, nowMs)
noteCut(p.rateNoise, p.rate.wMax)
return true
end
function cutRate(p, limits, nowMs)
local measured = math.max(
1.05 * measuredRate(p, nowMs),
1
)
cut(
p.rate,
math.min(
pacedRate(p, limits, nowMs),
measured
),
nowMs
)
p.rateToleranceMs = intervalOf(p, limits, nowMs).toleranceMs
end
function cutWindowFor(p, limits, attempt, nowMs)
if (p.window.wMax ~= 0 and attempt.startedAtMs <= p.window.cutAtMs) then
return false
end
if hearRefusal(
p.windowNoise,
p.window,
p.admitted,
p.attemptMs,
nowMs
) then
tellOfNoise(p.windowNoise, p.rateNoise, p.rate, nowMs)
return false
end
noteCut(
p.windowNoise,
pacedWindow(p, limits, nowMs)
)
cut(
p.window,
windowLevel(p, limits, attempt, nowMs),
nowMs
)
return true
end
function windowLevel(p, limits, attempt, nowMs)
return math.max(
1,
math.min(
pacedWindow(p, limits, nowMs),
attempt.inflight
)
)
end
function cutWindowTo(p, level, nowMs, newsMs)
if newsMs == nil then
newsMs = 0
end
cut(
p.window,
(level > 1 and level or 1),
nowMs,
newsMs
)
forgetNoise(p.windowNoise)
end
function newPacer()
return {
window = neverCut(),
rate = neverCut(),
windowNoise = noNoise(),
rateNoise = noNoise(),
goodput = newGoodput(),
attemptMs = 0,
startWindow = 8,
rateTatMs = 0,
rateToleranceMs = 0,
learnedRpm = 0,
learnedTpm = 0,
firstAdmittedMs = -1,
admitted = 0,
bucket = -1,
bucketCount = 0,
earlierCount = 0
}
end
function limitsInForce(p, limits)
if p.learnedRpm == 0 and p.learnedTpm == 0 then
return limits
end
return __TS__ObjectAssign(
{},
limits,
{
rpm = lowerLimit(limits.rpm, p.learnedRpm),
tpm = lowerLimit(limits.tpm, p.learnedTpm)
}
)
end
function pacedInterval(p, limits, nowMs)
if p.rate.wMax == 0 then
return nil
end
return {
intervalMs = intervalOf(p, limits, nowMs).intervalMs,
toleranceMs = p.rateToleranceMs
}
end
function pacedWaitMs(p, limits, nowMs)
local interval = pacedInterval(p, limits, nowMs)
return interval == nil and 0 or smoothWaitMs(interval, p.rateTatMs, nowMs)
end
function notePacedGrant(p, limits, startMs, nowMs)
countAdmitted(p, nowMs)
noteLetThrough(p.goodput)
local interval = pacedInterval(p, limits, nowMs)
if interval ~= nil then
p.rateTatMs = ((p.rateTatMs > startMs and p.rateTatMs or startMs) + 1 * interval.intervalMs)
end
end
function cutFor(p, limits, dimension, attempt, nowMs)
local hasCut = false
if dimension ~= "concurrency" then
hasCut = cutRateFor(p, limits, attempt, nowMs)
end
local mayBeWindow = dimension == "unknown" and attempt.inflight * 2 >= pacedWindow(p, limits, nowMs)
if dimension == "concurrency" or mayBeWindow then
hasCut = cutWindowFor(p, limits, attempt, nowMs) or hasCut
end
return hasCut
end
function cutForHang(p, limits, attempt, newsMs, nowMs)
if (p.window.wMax ~= 0 and attempt.startedAtMs <= p.window.cutAtMs) then
return
end
cutWindowTo(
p,
windowLevel(p, limits, attempt, nowMs),
nowMs,
newsMs
)
end
function growStartWindow(p, limits, inflight)
if limits.maxConcurrency > 0 or p.window.wMax ~= 0 or p.startWindow >= 512 then
return
end
if inflight * 2 >= p.startWindow then
p.startWindow = p.startWindow + 1
end
end
function emptyBurst(p, limits, openAtMs, nowMs)
local interval = pacedInterval(p, limits, nowMs)
if interval ~= nil then
p.rateTatMs = math.max(p.rateTatMs, openAtMs + interval.toleranceMs)
end
end
function learnLimits(p, told)
local rpm = (told.limitRequests ~= nil and told.limitRequests > 0 and (told.limitRequests - told.limitRequests == 0) and told.limitRequests or nil) or p.learnedRpm
local tpm = (told.limitTokens ~= nil and told.limitTokens > 0 and (told.limitTokens - told.limitTokens == 0) and told.limitTokens or nil) or p.learnedTpm
if rpm == p.learnedRpm and tpm == p.learnedTpm then
return false
end
p.learnedRpm = rpm
p.learnedTpm = tpm
return true
end
function cutEarly(p, limits, told, attempt, nowMs)
local ____told_0 = told
local remainingRequests = ____told_0.remainingRequests
local remainingTokens = ____told_0.remainingTokens
local tpm = lowerLimit(limits.tpm, p.learnedTpm)
local isShortOfTokens = remainingTokens ~= nil and tpm > 0 and remainingTokens < 0.5 * (tpm / 60)
local rate = pacedRate(p, limits, nowMs)
local isShortOfRequests = remainingRequests ~= nil and rate ~= 1e999 and remainingRequests < 1 * rate
if not (isShortOfTokens or isShortOfRequests) or not (not (p.rate.wMax ~= 0 and attempt.startedAtMs <= p.rate.cutAtMs) and nowMs - p.firstAdmittedMs >= 5000) then
return false
end
cutRate(p, limits, nowMs)
forgetNoise(p.rateNoise)
return true
end
____loaded["domain.scheduling.pacer"] = {pacedRate = pacedRate, pacedWindow = pacedWindow, pacedWaitMs = pacedWaitMs, cutEarly = cutEarly, cutWindowTo = cutWindowTo, growStartWindow = growStartWindow, learnLimits = learnLimits, limitsInForce = limitsInForce, cutFor = cutFor, cutForHang = cutForHang, emptyBurst = emptyBurst, lowerLimit = lowerLimit, newPacer = newPacer, notePacedGrant = notePacedGrant}
end
do
local windowInForce, rateInForce
local ____from = ____loaded["domain.scheduling.pacer"]
local pacedRate = ____from.pacedRate
local pacedWindow = ____from.pacedWindow
function windowInForce(state, source, nowMs)
local ____source_0 = source
local config = ____source_0.config
local configured = config.maxConcurrency > 0 and config.maxConcurrency or 1e999
local window = state.scheduling.pacer and pacedWindow(source.pacer, config, nowMs) or configured
local sinceMs = nowMs - source.reclosedAtMs
if not (sinceMs < 10000) then
return window
end
local whole = (512 < window and 512 or window)
local ramped = math.floor(whole * math.max(0.1, sinceMs / 10000))
return math.min(
window,
(ramped > 2 and ramped or 2)
)
end
function rateInForce(state, source, nowMs)
if state.scheduling.pacer then
return pacedRate(source.pacer, source.config, nowMs)
end
return source.rules.limits.rpm > 0 and source.rules.limits.rpm / 60 or 1e999
end
____loaded["domain.scheduling.in-force"] = {windowInForce = windowInForce, rateInForce = rateInForce}
end
do
local measurePool, median, poolOf
local ____from = ____loaded["lualib_bundle"]
local __TS__ArraySort = ____from.__TS__ArraySort
local ____from = ____loaded["domain.scheduling.health"]
local failureShare = ____from.failureShare
function measurePool(state, nowMs)
local ttfts = {}
local tpots = {}
local failures = {}
local ____list = state.sourceList
for ____at = 1, #____list do
local ____value = ____list[____at]
local breaker = ____value.breaker
local health = ____value.health
do
local __continue5
repeat
failures[#failures + 1] = failureShare(health)
if breaker.state ~= "closed" then
__continue5 = true
break
end
if health.ttftMs > 0 then
ttfts[#ttfts + 1] = health.ttftMs
end
if health.tpotMs > 0 then
tpots[#tpots + 1] = health.tpotMs
end
__continue5 = true
until true
if not __continue5 then
break
end
end
end
return {
measuredAtMs = nowMs,
ttftMs = median(ttfts),
tpotMs = median(tpots),
failShare = #failures < 3 and 0 or median(failures)
}
end
function median(values)
if #values == 0 then
return 0
end
__TS__ArraySort(
values,
function(____, a, b) return a - b end
)
local middle = math.floor(#values / 2)
return #values % 2 == 1 and values[middle + 1] or (values[middle] + values[middle + 1]) / 2
end
function poolOf(state, nowMs)
local ____state_0 = state
local pool = ____state_0.pool
if pool ~= nil and nowMs - pool.measuredAtMs < 250 then
return pool
end
local measured = measurePool(state, nowMs)
state.pool = measured
return measured
end
____loaded["domain.scheduling.pool"] = {poolOf = poolOf}
end
do
local forgetSamples, applyProbeOutcome, close, enterOpen, payBackTrips, countSample, shouldTrip, NEVER, STRETCHES, handBackProbe, trip, passProbe, openTimeMs, closedBreaker, breakerAdmission, startProbe, isCurrent, applyOutcome, forceOpen
local ____from = ____loaded["domain.random"]
local jittered = ____from.jittered
function forgetSamples(____bindingPattern0)
local stretches
stretches = ____bindingPattern0.stretches
do
local n = 0
while n < STRETCHES do
stretches.ids[n + 1] = NEVER[n + 1]
n = n + 1
end
end
end
function handBackProbe(b, leaseId)
if b.probeLease == leaseId then
b.probeLease = ""
end
end
function applyProbeOutcome(b, config, leaseId, outcome, rateLimited, isPanic, nowMs, random)
if outcome == "cancelled" or outcome == "alive" and rateLimited then
handBackProbe(b, leaseId)
return false
end
if outcome == "failure" then
trip(
b,
config,
isPanic,
nowMs,
random
)
return true
end
if outcome == "dead" then
return false
end
return passProbe(b, leaseId, nowMs)
end
function passProbe(b, leaseId, nowMs)
b.probesLeft = b.probesLeft - 1
if b.probesLeft > 0 then
handBackProbe(b, leaseId)
return false
end
close(b, nowMs)
return true
end
function close(b, nowMs)
b.state = "closed"
b.probeLease = ""
b.dead = false
b.deadInARow = 0
b.consecutiveFailures = 0
b.closedAtMs = nowMs
forgetSamples(b)
end
function trip(b, config, isPanic, nowMs, random)
payBackTrips(b, nowMs)
if not isPanic or b.trips == 0 then
b.trips = b.trips + 1
end
b.dead = false
enterOpen(
b,
nowMs + openTimeMs(config, b.trips, random)
)
end
function enterOpen(b, untilMs)
b.state = "open"
b.epoch = b.epoch + 1
b.openUntilMs = untilMs
b.probeLease = ""
b.probesLeft = 1
b.consecutiveFailures = 0
forgetSamples(b)
end
function openTimeMs(config, trips, random)
local timeMs = config.cooldownMs
do
local n = 1
while n < trips and timeMs < config.cooldownMaxMs do
timeMs = timeMs * 1.7
n = n + 1
end
end
return math.min(
config.cooldownMaxMs,
jittered(timeMs, 0.1, random)
)
end
function payBackTrips(b, nowMs)
if b.state ~= "closed" then
return
end
local paid = math.floor((nowMs - b.closedAtMs) / 10000)
b.trips = math.max(0, b.trips - paid)
b.closedAtMs = b.closedAtMs + paid * 10000
end
function countSample(b, config, success, nowMs)
local ____b_stretches_0 = b.stretches
local ids = ____b_stretches_0.ids
local successes = ____b_stretches_0.successes
local failures = ____b_stretches_0.failures
local id = (math.floor(nowMs * STRETCHES / config.windowMs))
local at = id % STRETCHES
if ids[at + 1] ~= id then
ids[at + 1] = id
successes[at + 1] = 0
failures[at + 1] = 0
end
local counts = success and successes or failures
counts[at + 1] = counts[at + 1] + 1
end
function shouldTrip(b, config, nowMs)
if b.consecutiveFailures >= config.failThreshold then
return true
end
local ____b_1 = b
local stretches = ____b_1.stretches
local newest = (math.floor(nowMs * STRETCHES / config.windowMs))
local successes = 0
local failures = 0
local recentSuccesses = 0
local recentFailures = 0
do
local at = 0
while at < STRETCHES do
do
local __continue45
repeat
local id = stretches.ids[at + 1]
if id <= newest - STRETCHES or id > newest then
__continue45 = true
break
end
successes = successes + stretches.successes[at + 1]
failures = failures + stretches.failures[at + 1]
if id < newest - 1 then
__continue45 = true
break
end
recentSuccesses = recentSuccesses + stretches.successes[at + 1]
recentFailures = recentFailures + stretches.failures[at + 1]
__continue45 = true
until true
if not __continue45 then
break
end
end
at = at + 1
end
end
local samples = successes + failures
if samples < config.minSamples or failures < config.failRate * samples then
return false
end
return recentSuccesses < (recentFailures > 3 and recentFailures or 3)
end
NEVER = {
-1,
-1,
-1,
-1,
-1,
-1,
-1,
-1,
-1,
-1,
-1,
-1
}
local NO_COUNTS = {
0,
0,
0,
0,
0,
0,
0,
0,
0,
0,
0,
0
}
STRETCHES = #NEVER
function closedBreaker(nowMs)
return {
state = "closed",
epoch = 0,
openUntilMs = 0,
trips = 0,
closedAtMs = nowMs,
consecutiveFailures = 0,
dead = false,
deadInARow = 0,
probeLease = "",
probesLeft = 1,
stretches = {
ids = {unpack(NEVER)},
successes = {unpack(NO_COUNTS)},
failures = {unpack(NO_COUNTS)}
}
}
end
local CLOSED = {kind = "closed"}
local PROBE = {kind = "probe"}
function breakerAdmission(b, config, nowMs, probeEndsMs)
if b.state == "closed" then
return CLOSED
end
if b.state == "open" and b.openUntilMs > nowMs then
return {kind = "wait", waitMs = b.openUntilMs - nowMs}
end
if b.probeLease == "" then
return PROBE
end
local leaseLeftMs = math.max(1, (probeEndsMs or nowMs) - nowMs)
return {
kind = "wait",
waitMs = math.min(
leaseLeftMs,
(config.cooldownMs > 1000 and config.cooldownMs or 1000)
)
}
end
function startProbe(b, leaseId)
b.state = "half_open"
b.probeLease = leaseId
end
function isCurrent(b, leaseId, epoch)
if b.epoch ~= epoch then
return false
end
return b.state == "closed" or b.state == "half_open" and b.probeLease == leaseId
end
function applyOutcome(b, config, leaseId, outcome, rateLimited, isPanic, nowMs, random)
if b.state == "half_open" then
return applyProbeOutcome(
b,
config,
leaseId,
outcome,
rateLimited,
isPanic,
nowMs,
random
)
end
if outcome == "cancelled" or outcome == "dead" then
return false
end
if outcome == "alive" then
b.consecutiveFailures = 0
return false
end
countSample(b, config, outcome == "success", nowMs)
if outcome == "success" then
b.consecutiveFailures = 0
return false
end
b.consecutiveFailures = b.consecutiveFailures + 1
if not shouldTrip(b, config, nowMs) then
return false
end
trip(
b,
config,
isPanic,
nowMs,
random
)
return true
end
function forceOpen(b, nowMs, recheckMs)
payBackTrips(b, nowMs)
b.deadInARow = b.deadInARow + 1
b.dead = true
local waitMs = 60000
do
local n = 1
while n < b.deadInARow and waitMs < (30 * 60000) do
waitMs = waitMs * 2
n = n + 1
end
end
enterOpen(
b,
nowMs + math.min((30 * 60000), recheckMs or waitMs)
)
end
____loaded["domain.breaker"] = {breakerAdmission = breakerAdmission, applyOutcome = applyOutcome, passProbe = passProbe, trip = trip, forceOpen = forceOpen, handBackProbe = handBackProbe, isCurrent = isCurrent, closedBreaker = closedBreaker, startProbe = startProbe}
end
do
local tightestOf, newLineup, replaceStanding, scoreFor
local ____from = ____loaded["lualib_bundle"]
local __TS__ArrayFindIndex = ____from.__TS__ArrayFindIndex
function tightestOf(standings)
local tightest = {}
local ____list = standings
for ____at = 1, #____list do
local ____value = ____list[____at]
local source = ____value.source
do
local __continue14
repeat
if source.mostTokens == 0 then
__continue14 = true
break
end
local at = __TS__ArrayFindIndex(
tightest,
function(____, other) return (source.sizes == other.sizes and source.config.estTokens == other.config.estTokens and source.config.tpmCharge == other.config.tpmCharge) end
)
if at < 0 then
tightest[#tightest + 1] = source
elseif source.mostTokens < tightest[at + 1].mostTokens then
tightest[at + 1] = source
end
__continue14 = true
until true
if not __continue14 then
break
end
end
end
return tightest
end
function newLineup(____bindingPattern0, standings)
local maxTokens
local tag
local candidates
candidates = ____bindingPattern0.candidates
tag = ____bindingPattern0.tag
maxTokens = ____bindingPattern0.maxTokens
local scores = {}
local waiting = 0
local ____list = standings
for ____at = 1, #____list do
local ____value = ____list[____at]
local waitMs = ____value.waitMs
scores[#scores + 1] = (-1)
if waitMs ~= 0 then
waiting = waiting + 1
end
end
return {
candidates = candidates,
standings = standings,
waiting = waiting,
tightest = tightestOf(standings),
scores = scores,
tag = tag,
maxTokens = maxTokens,
stale = nil
}
end
function replaceStanding(lineup, at, standing)
local ____lineup_0 = lineup
local standings = ____lineup_0.standings
local scores = ____lineup_0.scores
if standings[at + 1].waitMs ~= 0 then
lineup.waiting = lineup.waiting - 1
end
if standing.waitMs ~= 0 then
lineup.waiting = lineup.waiting + 1
end
standings[at + 1] = standing
scores[at + 1] = (-1)
end
function scoreFor(lineup, ____bindingPattern0)
local maxTokens
local tag
tag = ____bindingPattern0.tag
maxTokens = ____bindingPattern0.maxTokens
if lineup.tag == tag and lineup.maxTokens == maxTokens then
return
end
do
local at = 0
while at < #lineup.scores do
lineup.scores[at + 1] = (-1)
at = at + 1
end
end
lineup.tag = tag
lineup.maxTokens = maxTokens
end
____loaded["domain.lineup"] = {newLineup = newLineup, replaceStanding = replaceStanding, scoreFor = scoreFor}
end
do
local GATE_NAMES
GATE_NAMES = {
"global_concurrency",
"concurrency",
"global_rpm",
"rpm",
"global_tpm",
"tpm"
}
____loaded["domain.tick"] = {GATE_NAMES = GATE_NAMES}
end
do
local askAgainMs, gateOf, refusalKind, describePassed, passedOver, NONE_PASSED, refuse, refuseFor
local ____from = ____loaded["lualib_bundle"]
local __TS__ArrayIncludes = ____from.__TS__ArrayIncludes
local __TS__ObjectAssign = ____from.__TS__ObjectAssign
local ____from = ____loaded["domain.tick"]
local GATE_NAMES = ____from.GATE_NAMES
function askAgainMs(____bindingPattern0, prefetchMs)
local reason
local waitMs
waitMs = ____bindingPattern0.waitMs
reason = ____bindingPattern0.reason
local isSlot = refusalKind(reason) ~= "breaker"
return isSlot and waitMs > prefetchMs and waitMs - prefetchMs / 2 or waitMs
end
function gateOf(standing)
local reason = standing and standing.reason or nil
return reason ~= nil and (__TS__ArrayIncludes(GATE_NAMES, reason)) and ({gate = reason}) or ({})
end
function refusalKind(reason)
if reason == "cooling" then
return "cooldown"
end
return reason ~= nil and (__TS__ArrayIncludes(GATE_NAMES, reason)) and "gate" or "breaker"
end
function passedOver(all, considered, chosen)
local isWhole = considered == all
local passed = nil
local ____list = all
for ____at = 1, #____list do
local standing = ____list[____at]
do
local __continue15
repeat
if isWhole and standing.waitMs == 0 then
__continue15 = true
break
end
if standing == chosen then
__continue15 = true
break
end
local left = not isWhole and not __TS__ArrayIncludes(considered, standing)
if standing.waitMs == 0 and not left then
__continue15 = true
break
end
if passed == nil then
passed = {}
end
passed[#passed + 1] = describePassed(standing, left)
__continue15 = true
until true
if not __continue15 then
break
end
end
end
return passed or NONE_PASSED
end
function describePassed(____bindingPattern0, failedHere)
local reason
local waitMs
local source
source = ____bindingPattern0.source
waitMs = ____bindingPattern0.waitMs
reason = ____bindingPattern0.reason
local ____source_2 = source
local lastError = ____source_2.lastError
return __TS__ObjectAssign(
{
source = source.config.name,
reason = failedHere and waitMs == 0 and "failed_in_call" or (reason or "failed_in_call"),
waitMs = (waitMs - waitMs == 0) and waitMs or 0
},
lastError == nil and ({}) or ({lastError = lastError})
)
end
NONE_PASSED = {}
function refuse(want, all, standings, prefetchMs)
local nearest = nil
local ____list = standings
for ____at = 1, #____list do
local standing = ____list[____at]
if nearest == nil or standing.waitMs < nearest.waitMs then
nearest = standing
end
end
local passed = passedOver(all, standings, nil)
if nearest == nil or nearest.waitMs == 1e999 then
return __TS__ObjectAssign(
{leaseId = want.leaseId, kind = "never", waitHintMs = 0, passedOver = passed},
gateOf(nearest)
)
end
return __TS__ObjectAssign(
{
leaseId = want.leaseId,
kind = refusalKind(nearest.reason),
waitHintMs = askAgainMs(nearest, prefetchMs),
passedOver = passed
},
gateOf(nearest)
)
end
function refuseFor(kind, want, waitHintMs, standings)
return {
leaseId = want.leaseId,
kind = kind,
waitHintMs = waitHintMs,
passedOver = passedOver(standings, standings, nil)
}
end
____loaded["domain.refusal"] = {NONE_PASSED = NONE_PASSED, passedOver = passedOver, refuse = refuse, refuseFor = refuseFor}
end
do
local newTokenBook, learnedTokens, learnedOutTokens, learnTokens
local ____from = ____loaded["lualib_bundle"]
local Map = ____from.Map
local __TS__New = ____from.__TS__New
local __TS__Iterator = ____from.__TS__Iterator
function newTokenBook()
local records = __TS__New(Map)
return {
get = function(____, tag) return records:get(tag) end,
add = function(self, tag, record)
if records.size >= 4096 then
for ____, oldest in __TS__Iterator(records:keys()) do
if records:delete(oldest) then
break
end
end
end
records:set(tag, record)
end
}
end
function learnedTokens(book, tag, promptTokens, maxTokens)
local known = book:get(tag)
if known == nil or known.samples < 20 then
return nil
end
return math.max(
1,
math.ceil(promptTokens * known.inRatio + math.min(maxTokens or 1e999, known.outTokens))
)
end
function learnedOutTokens(book, tag)
local known = book:get(tag)
local ____temp_0
if known == nil or known.samples < 20 then
____temp_0 = nil
else
____temp_0 = known.outTokens
end
return ____temp_0
end
function learnTokens(book, tag, estimatedIn, actualIn, actualOut)
local ratio = actualIn / (estimatedIn > 1 and estimatedIn or 1)
if not (ratio - ratio == 0) or not (actualOut - actualOut == 0) or ratio < 0 or actualOut < 0 then
return
end
local known = book:get(tag)
if known == nil then
book:add(tag, {
samples = 1,
inRatio = ratio,
outTokens = actualOut,
inDeviation = 0,
outDeviation = 0
})
return
end
local alpha = math.max(0.05, 1 / (known.samples + 1))
known.samples = known.samples + 1
known.inDeviation = known.inDeviation + alpha * (math.abs(ratio - known.inRatio) - known.inDeviation)
known.outDeviation = known.outDeviation + alpha * (math.abs(actualOut - known.outTokens) - known.outDeviation)
known.inRatio = known.inRatio + alpha * (ratio - known.inRatio)
known.outTokens = known.outTokens + alpha * (actualOut - known.outTokens)
end
____loaded["domain.scheduling.token-learning"] = {learnedTokens = learnedTokens, learnTokens = learnTokens, newTokenBook = newTokenBook, learnedOutTokens = learnedOutTokens}
end
do
local fitsAll, renewStale, judgedStanding, fittingStanding, gateFacts, waiting, breakerReason, openFacts, gateStanding, untilMs, estimatedTokens, standingOf, standingsOf, hasRoomNow, usualRefusal
local ____from = ____loaded["lualib_bundle"]
local __TS__ArrayIndexOf = ____from.__TS__ArrayIndexOf
local ____from = ____loaded["domain.breaker"]
local breakerAdmission = ____from.breakerAdmission
local ____from = ____loaded["domain.cooldown"]
local cooldownWaitMs = ____from.cooldownWaitMs
local ____from = ____loaded["domain.gates.gate"]
local requestWaitMs = ____from.requestWaitMs
local tokenWaitMs = ____from.tokenWaitMs
local ____from = ____loaded["domain.lineup"]
local newLineup = ____from.newLineup
local replaceStanding = ____from.replaceStanding
local ____from = ____loaded["domain.scheduling.in-force"]
local windowInForce = ____from.windowInForce
local ____from = ____loaded["domain.scheduling.pacer"]
local pacedWaitMs = ____from.pacedWaitMs
local ____from = ____loaded["domain.scheduling.token-learning"]
local learnedTokens = ____from.learnedTokens
function estimatedTokens(state, source, want)
local ____source_config_0 = source.config
local estTokens = ____source_config_0.estTokens
local tpmCharge = ____source_config_0.tpmCharge
if estTokens ~= nil then
return estTokens
end
if not state.scheduling.learnTokens or tpmCharge == "max" or want.promptTokens == nil then
return want.estTokens
end
local ____source_1 = source
local sizes = ____source_1.sizes
if state.keepsFacts and sizes.want == want then
return sizes.tokens
end
local learned = learnedTokens(sizes.book, want.tag or "", want.promptTokens, want.maxTokens)
local tokens = learned or want.estTokens
if state.keepsFacts then
sizes.want = want
sizes.tokens = tokens
end
return tokens
end
function fitsAll(state, ____bindingPattern0, want)
local tightest
tightest = ____bindingPattern0.tightest
local ____list = tightest
for ____at = 1, #____list do
local source = ____list[____at]
if estimatedTokens(state, source, want) > source.mostTokens then
return false
end
end
return true
end
function renewStale(state, lineup, want, clock)
local ____lineup_3 = lineup
local stale = ____lineup_3.stale
if stale == nil then
return
end
lineup.stale = nil
local at = __TS__ArrayIndexOf(lineup.candidates, stale.config.name)
if at >= 0 then
replaceStanding(
lineup,
at,
standingOf(state, stale, want, clock)
)
end
end
function standingOf(state, source, want, clock)
local ____state_keepsFacts_4
if state.keepsFacts then
____state_keepsFacts_4 = source.standing
else
____state_keepsFacts_4 = nil
end
local kept = ____state_keepsFacts_4
if kept ~= nil and (source.mostTokens == 0 or estimatedTokens(state, source, want) <= source.mostTokens) then
return kept
end
local tokens = (source.rules.tokens ~= nil or state.globalRules.tokens ~= nil) and estimatedTokens(state, source, want) or 0
return judgedStanding(state, source, clock, tokens)
end
function judgedStanding(state, source, clock, tokens)
if (source.config.tpm > 0 and tokens > source.config.tpm) then
return waiting(source, 1e999, "tpm")
end
if (state.globalRules.limits.tpm > 0 and tokens > state.globalRules.limits.tpm) then
return waiting(source, 1e999, "global_tpm")
end
if not state.keepsFacts then
return fittingStanding(
state,
source,
gateFacts(state, source, clock),
clock,
tokens
)
end
if source.facts == nil then
source.facts = gateFacts(state, source, clock)
end
local standing = fittingStanding(
state,
source,
source.facts,
clock,
tokens
)
if not (source.config.limitRule == "window" or state.globalRules.limits.limitRule == "window") then
source.standing = standing
end
return standing
end
function fittingStanding(state, source, facts, clock, tokens)
return facts.isBlocked and waiting(source, facts.waitMs, facts.reason) or gateStanding(
state,
source,
facts,
clock,
tokens
)
end
function gateFacts(state, source, clock)
local ____source_5 = source
local breaker = ____source_5.breaker
if breaker.state == "closed" then
return openFacts(state, source, clock, false)
end
local ____temp_8
if breaker.probeLease == "" then
____temp_8 = nil
else
local ____opt_6 = state.leases:get(breaker.probeLease)
____temp_8 = ____opt_6 and ____opt_6.expiresAtMs or nil
end
local probeEndsMs = ____temp_8
local admission = breakerAdmission(breaker, state.breaker, clock.nowMs, probeEndsMs)
if admission.kind ~= "wait" then
return openFacts(state, source, clock, admission.kind == "probe")
end
local reason = breakerReason(source)
return {
isBlocked = true,
waitMs = admission.waitMs,
reason = reason,
needsRelease = false,
probe = false
}
end
function waiting(source, waitMs, reason)
return {
source = source,
rank = (false and 2 * source.config.priority or 2 * source.config.priority + 1),
waitMs = waitMs,
reason = reason,
probe = false,
startable = false
}
end
function breakerReason(source)
if source.breaker.state == "half_open" then
return "half_open"
end
return source.breaker.dead and "dead" or "breaker_open"
end
function openFacts(state, source, clock, probe)
local ____state_10 = state
local leases = ____state_10.leases
local globalRules = ____state_10.globalRules
local ____source_config_11 = source.config
local name = ____source_config_11.name
local waitMs = cooldownWaitMs(source.cooldown, clock.nowMs)
local reason = waitMs > 0 and "cooling" or nil
local needsRelease = false
local mostInFlight = globalRules.limits.maxConcurrency
if mostInFlight > 0 and leases:count() >= mostInFlight then
if reason == nil then
reason = "global_concurrency"
end
needsRelease = true
waitMs = math.max(
waitMs,
untilMs(
leases:nextExpiryMs(),
state,
clock
)
)
end
if leases:inflightOf(name) >= windowInForce(state, source, clock.nowMs) then
if reason == nil then
reason = "concurrency"
end
needsRelease = true
waitMs = math.max(
waitMs,
untilMs(
leases:nextExpiryOfMs(name),
state,
clock
)
)
end
local globalMs = requestWaitMs(globalRules, state.globalGates, clock)
if globalMs > 0 then
if reason == nil then
reason = "global_rpm"
end
waitMs = (globalMs > waitMs and globalMs or waitMs)
end
local ownMs = math.max(
requestWaitMs(source.rules, source.gates, clock),
(state.scheduling.pacer and pacedWaitMs(source.pacer, source.config, clock.nowMs) or 0)
)
if ownMs > 0 then
if reason == nil then
reason = "rpm"
end
waitMs = (ownMs > waitMs and ownMs or waitMs)
end
return {
isBlocked = false,
waitMs = waitMs,
reason = reason,
needsRelease = needsRelease,
probe = probe
}
end
function gateStanding(state, source, facts, clock, tokens)
local ____facts_12 = facts
local probe = ____facts_12.probe
local ____facts_13 = facts
local waitMs = ____facts_13.waitMs
local reason = ____facts_13.reason
local globalMs = tokenWaitMs(state.globalRules, state.globalGates, clock, tokens)
if globalMs > 0 then
if reason == nil then
reason = "global_tpm"
end
waitMs = (globalMs > waitMs and globalMs or waitMs)
end
local ownMs = tokenWaitMs(source.rules, source.gates, clock, tokens)
if ownMs > 0 then
if reason == nil then
reason = "tpm"
end
waitMs = (ownMs > waitMs and ownMs or waitMs)
end
local mayBeAhead = not facts.needsRelease and not probe
local startable = waitMs == 0 or mayBeAhead and waitMs <= ((source.config.limitRule == "window" or state.globalRules.limits.limitRule == "window") and 0 or state.scheduling.prefetchMs)
return {
source = source,
rank = (probe and 2 * source.config.priority or 2 * source.config.priority + 1),
waitMs = waitMs,
reason = reason,
probe = probe,
startable = startable
}
end
function untilMs(momentMs, state, clock)
local leftMs = math.max(1, (momentMs or clock.nowMs) - clock.nowMs)
return state.scheduling.prefetchMs > 0 and (1000 < leftMs and 1000 or leftMs) or leftMs
end
function standingsOf(state, want, clock)
local ____state_2 = state
local lineup = ____state_2.lineup
if lineup ~= nil and lineup.candidates == want.candidates and fitsAll(state, lineup, want) then
renewStale(state, lineup, want, clock)
return lineup.standings
end
local standings = {}
local areKept = state.keepsFacts
local ____list = want.candidates
for ____at = 1, #____list do
local name = ____list[____at]
local source = state.sources:get(name)
local standing = standingOf(state, source, want, clock)
standings[#standings + 1] = standing
if source.standing ~= standing then
areKept = false
end
end
state.lineup = areKept and newLineup(want, standings) or nil
return standings
end
function hasRoomNow(state, source, clock)
if source.breaker.state ~= "closed" then
return false
end
return judgedStanding(state, source, clock, 0).startable
end
function usualRefusal(state, source, clock)
local usual = math.floor(state.meanTokens + 0.5)
local ____judgedStanding_result_9 = judgedStanding(state, source, clock, usual)
local waitMs = ____judgedStanding_result_9.waitMs
local reason = ____judgedStanding_result_9.reason
if reason == nil or waitMs <= 0 then
return nil
end
local isKnown = (waitMs - waitMs == 0) and not (reason == "concurrency" or reason == "global_concurrency" or reason == "half_open")
return {reason = reason, waitMs = isKnown and waitMs or 0}
end
____loaded["domain.standing"] = {usualRefusal = usualRefusal, estimatedTokens = estimatedTokens, standingOf = standingOf, standingsOf = standingsOf, hasRoomNow = hasRoomNow}
end
do
local newBudgets, earn, payRetry, payHedge
function newBudgets()
return {retryTokens = 20, hedgeTokens = 1}
end
function earn(b)
b.retryTokens = math.min(20, b.retryTokens + 0.1)
b.hedgeTokens = math.min(20, b.hedgeTokens + 0.05)
end
function payRetry(b)
b.retryTokens = math.max(0, b.retryTokens - 1)
end
function payHedge(b)
b.hedgeTokens = b.hedgeTokens - 1
end
____loaded["domain.scheduling.budgets"] = {earn = earn, newBudgets = newBudgets, payHedge = payHedge, payRetry = payRetry}
end
do
local medianOf, newGradient, gradientShare
local ____from = ____loaded["lualib_bundle"]
local __TS__ArraySetLength = ____from.__TS__ArraySetLength
local __TS__ArraySort = ____from.__TS__ArraySort
function medianOf(values)
local sorted = __TS__ArraySort(
{unpack(values)},
function(____, a, b) return a - b end
)
local middle = math.floor(#sorted / 2)
return #sorted % 2 == 1 and sorted[middle + 1] or (sorted[middle] + sorted[middle + 1]) / 2
end
function newGradient()
return {samples = {}, baseMs = 0, baseAtMs = 0}
end
function gradientShare(g, tpotMs, nowMs)
local ____g_samples_0 = g.samples
____g_samples_0[#____g_samples_0 + 1] = tpotMs
if #g.samples < 12 then
return nil
end
local currentMs = medianOf(g.samples)
__TS__ArraySetLength(g.samples, 0)
if g.baseMs == 0 then
g.baseMs = currentMs
end
local minutes = math.max(0, nowMs - g.baseAtMs) / 60000
g.baseMs = math.min(g.baseMs * (1 + 0.01 * (g.baseAtMs == 0 and 0 or minutes)), currentMs)
g.baseAtMs = nowMs
local boundMs = 2 * (5 > g.baseMs and 5 or g.baseMs)
local ____temp_1
if currentMs <= boundMs then
____temp_1 = nil
else
____temp_1 = math.max(0.5, boundMs / currentMs)
end
return ____temp_1
end
____loaded["domain.scheduling.gradient"] = {gradientShare = gradientShare, newGradient = newGradient}
end
do
local growWindow, learnSize, hearLimits, learnFirstToken, learnFrom
local ____from = ____loaded["domain.gates.gate"]
local gateRules = ____from.gateRules
local ____from = ____loaded["domain.scheduling.budgets"]
local earn = ____from.earn
local ____from = ____loaded["domain.scheduling.goodput"]
local noteAnswer = ____from.noteAnswer
local ____from = ____loaded["domain.scheduling.gradient"]
local gradientShare = ____from.gradientShare
local ____from = ____loaded["domain.scheduling.health"]
local noteFailure = ____from.noteFailure
local noteFirstToken = ____from.noteFirstToken
local noteSuccess = ____from.noteSuccess
local ____from = ____loaded["domain.scheduling.in-force"]
local windowInForce = ____from.windowInForce
local ____from = ____loaded["domain.scheduling.pacer"]
local cutEarly = ____from.cutEarly
local cutWindowTo = ____from.cutWindowTo
local growStartWindow = ____from.growStartWindow
local learnLimits = ____from.learnLimits
local limitsInForce = ____from.limitsInForce
local ____from = ____loaded["domain.scheduling.token-learning"]
local learnTokens = ____from.learnTokens
function learnFirstToken(state, ____bindingPattern0, ttftMs)
local health
health = ____bindingPattern0.health
if health.ttftMs == 0 then
state.pool = nil
end
noteFirstToken(health, ttftMs)
end
function growWindow(state, source, lease, s, nowMs)
local ____source_0 = source
local pacer = ____source_0.pacer
local gradient = ____source_0.gradient
local config = ____source_0.config
if config.maxConcurrency > 0 then
return
end
local inflight = state.leases:inflightOf(config.name) + 1
growStartWindow(pacer, config, inflight)
if s.tpotMs == nil or s.tpotMs <= 0 then
return
end
local share = gradientShare(gradient, s.tpotMs, nowMs)
if share == nil or (pacer.window.wMax ~= 0 and lease.startedAtMs <= pacer.window.cutAtMs) then
return
end
cutWindowTo(
pacer,
math.min(
windowInForce(state, source, nowMs),
inflight
) * share / 0.85,
nowMs,
s.durationMs
)
end
function learnSize(state, source, lease, ____bindingPattern0)
local outTokens
local inTokens
inTokens = ____bindingPattern0.inTokens
outTokens = ____bindingPattern0.outTokens
if not state.scheduling.learnTokens or lease.promptTokens == nil then
return
end
if inTokens == nil or outTokens == nil then
return
end
learnTokens(
source.sizes.book,
lease.tag,
lease.promptTokens,
inTokens,
outTokens
)
end
function hearLimits(state, source, lease, s, nowMs)
if not state.scheduling.headers or s.limits == nil then
return
end
local ____source_1 = source
local pacer = ____source_1.pacer
local config = ____source_1.config
if learnLimits(pacer, s.limits) then
source.rules = gateRules(limitsInForce(pacer, config))
end
if state.scheduling.pacer then
cutEarly(
pacer,
config,
s.limits,
lease,
nowMs
)
end
end
function learnFrom(state, source, lease, s, nowMs)
if s.limits ~= nil then
hearLimits(
state,
source,
lease,
s,
nowMs
)
end
if s.outcome == "failure" then
noteFailure(source.health, s.durationMs, nowMs)
return
end
if s.outcome ~= "success" then
return
end
if lease.ttftMs == 0 and s.ttftMs ~= nil then
learnFirstToken(state, source, s.ttftMs)
end
noteSuccess(source.health, s.durationMs, s.tpotMs, nowMs)
earn(state.budgets)
noteAnswer(source.pacer.goodput, nowMs)
source.pacer.attemptMs = source.health.durationMs
if state.scheduling.pacer then
growWindow(
state,
source,
lease,
s,
nowMs
)
end
learnSize(state, source, lease, s)
end
____loaded["domain.scheduling.learning"] = {learnFirstToken = learnFirstToken, learnFrom = learnFrom}
end
do
local relieve, evidenceOf, isSlow, isOnlyOneLeft, noteChange, coolAfter, applyAttempt, hearOverdue, hearFirstToken
local ____from = ____loaded["lualib_bundle"]
local __TS__StringIncludes = ____from.__TS__StringIncludes
local ____from = ____loaded["domain.breaker"]
local applyOutcome = ____from.applyOutcome
local passProbe = ____from.passProbe
local trip = ____from.trip
local ____from = ____loaded["domain.cooldown"]
local coolDown = ____from.coolDown
local endCooldown = ____from.endCooldown
local ____from = ____loaded["domain.scheduling.evidence"]
local addEvidence = ____from.addEvidence
local restartEvidence = ____from.restartEvidence
local ____from = ____loaded["domain.scheduling.goodput"]
local noteRefused = ____from.noteRefused
local ____from = ____loaded["domain.scheduling.learning"]
local learnFirstToken = ____from.learnFirstToken
local ____from = ____loaded["domain.scheduling.pacer"]
local cutFor = ____from.cutFor
local cutForHang = ____from.cutForHang
local emptyBurst = ____from.emptyBurst
local ____from = ____loaded["domain.scheduling.pool"]
local poolOf = ____from.poolOf
function relieve(state, ____bindingPattern0, lease, nowMs)
local health
local config
local pacer
pacer = ____bindingPattern0.pacer
config = ____bindingPattern0.config
health = ____bindingPattern0.health
if not state.scheduling.pacer or config.maxConcurrency > 0 then
return
end
if pacer.window.wMax ~= 0 and health.lastSuccessMs < pacer.window.cutAtMs then
return
end
cutForHang(
pacer,
config,
lease,
health.durationMs,
nowMs
)
end
function evidenceOf(source, lease, s)
if s.outcome == "failure" then
if lease.overdue == "told" then
return nil
end
local ____opt_1 = s.lastError
if ____opt_1 ~= nil then
local ____opt_2 = s.lastError
____opt_1 = __TS__StringIncludes(____opt_2 and ____opt_2.code, "timeout")
end
return ____opt_1 == true and "hang" or "failure"
end
if s.outcome ~= "success" or lease.overdue == "reversed" then
return nil
end
if lease.overdue == "told" then
return "double_success"
end
return isSlow(source, s) and "slow_success" or "success"
end
function isSlow(____bindingPattern0, s)
local health
health = ____bindingPattern0.health
if health.ttftMs == 0 or health.tpotMs == 0 or s.outTokens == nil then
return false
end
local usualMs = health.ttftMs + s.outTokens * health.tpotMs
return s.durationMs > math.max(1000, 4 * usualMs)
end
function isOnlyOneLeft(state, source)
if state.sources.size == 1 then
return false
end
local ____list = state.sourceList
for ____at = 1, #____list do
local other = ____list[____at]
if other ~= source and other.breaker.state == "closed" then
return false
end
end
return true
end
function noteChange(state, source, nowMs)
local ____source_5 = source
local breaker = ____source_5.breaker
local evidence = ____source_5.evidence
state.pool = nil
if breaker.state == "open" then
local hung = state.scheduling.evidence and (evidence.hangs * 2 > evidence.fails)
breaker.probesLeft = hung and math.max(
1,
(breaker.trips < 3 and breaker.trips or 3)
) or 1
elseif breaker.state == "closed" then
restartEvidence(evidence, state.scheduling.ramp, nowMs)
if state.scheduling.ramp then
source.reclosedAtMs = nowMs
end
end
end
function coolAfter(state, ____bindingPattern0, lease, s, nowMs, random)
local config
local pacer
local cooldown
cooldown = ____bindingPattern0.cooldown
pacer = ____bindingPattern0.pacer
config = ____bindingPattern0.config
if s.outcome == "success" then
endCooldown(cooldown)
end
if s.rateLimited == nil then
return false
end
local isNews = cooldown.limitedInARow == 0 or (cooldown.limitedInARow > 0 and lease.startedAtMs <= cooldown.limitedAtMs)
coolDown(
cooldown,
nowMs,
lease.startedAtMs,
s.retryAfterMs,
random
)
noteRefused(pacer.goodput)
if not state.scheduling.pacer then
return true
end
if isNews then
cutFor(
pacer,
config,
s.rateLimited,
lease,
nowMs
)
end
emptyBurst(pacer, config, cooldown.coolUntilMs, nowMs)
return true
end
function applyAttempt(state, source, lease, s, nowMs, random)
local ____source_0 = source
local breaker = ____source_0.breaker
local isPanic = state.scheduling.evidence and isOnlyOneLeft(state, source)
local isRateLimited = s.rateLimited ~= nil
local wasClosed = breaker.state == "closed"
local changed = applyOutcome(
breaker,
state.breaker,
s.leaseId,
s.outcome,
isRateLimited,
isPanic,
nowMs,
random
)
local kind = evidenceOf(source, lease, s)
if kind == "hang" then
relieve(state, source, lease, nowMs)
end
if state.scheduling.evidence and kind ~= nil then
local isBroken = addEvidence(
source.evidence,
kind,
poolOf(state, nowMs).failShare,
nowMs
)
if isBroken and wasClosed and not changed then
trip(
breaker,
state.breaker,
isPanic,
nowMs,
random
)
changed = true
end
end
if changed then
noteChange(state, source, nowMs)
end
return changed
end
function hearOverdue(state, source, lease, nowMs, random)
lease.overdue = "told"
relieve(state, source, lease, nowMs)
if lease.grant.probe or not state.scheduling.evidence then
return false
end
if not addEvidence(
source.evidence,
"hang",
poolOf(state, nowMs).failShare,
nowMs
) then
return false
end
trip(
source.breaker,
state.breaker,
isOnlyOneLeft(state, source),
nowMs,
random
)
noteChange(state, source, nowMs)
return true
end
function hearFirstToken(state, source, lease, v, isCurrent, nowMs)
if v.ttftMs ~= nil then
lease.ttftMs = v.ttftMs
learnFirstToken(state, source, v.ttftMs)
end
local isReversal = lease.overdue == "told"
if isReversal then
lease.overdue = "reversed"
end
if not isCurrent then
return false
end
if source.breaker.state ~= "half_open" then
if isReversal and state.scheduling.evidence then
addEvidence(
source.evidence,
"double_success",
poolOf(state, nowMs).failShare,
nowMs
)
end
return false
end
if not passProbe(source.breaker, v.leaseId, nowMs) then
return false
end
noteChange(state, source, nowMs)
return true
end
____loaded["domain.scheduling.evidence-flow"] = {applyAttempt = applyAttempt, coolAfter = coolAfter, hearFirstToken = hearFirstToken, hearOverdue = hearOverdue}
end
do
local settleBooks, teach, APPLIED, settle, hear, reclaimExpired
local ____from = ____loaded["lualib_bundle"]
local __TS__ObjectAssign = ____from.__TS__ObjectAssign
local ____from = ____loaded["domain.breaker"]
local forceOpen = ____from.forceOpen
local handBackProbe = ____from.handBackProbe
local isCurrent = ____from.isCurrent
local ____from = ____loaded["domain.gates.gate"]
local settleGates = ____from.settleGates
local ____from = ____loaded["domain.scheduling.evidence-flow"]
local applyAttempt = ____from.applyAttempt
local coolAfter = ____from.coolAfter
local hearFirstToken = ____from.hearFirstToken
local hearOverdue = ____from.hearOverdue
local ____from = ____loaded["domain.scheduling.learning"]
local learnFrom = ____from.learnFrom
function settleBooks(state, source, lease, s, clock)
local ____lease_grant_2 = lease.grant
local leaseId = ____lease_grant_2.leaseId
local reservedTokens = ____lease_grant_2.reservedTokens
local windowId = ____lease_grant_2.windowId
local actualTokens = s.sent and math.max(0, s.actualTokens or reservedTokens) or 0
local returnRequest = not s.sent
settleGates(source.rules, source.gates, clock, {
leaseId = leaseId,
windowId = windowId,
reservedTokens = reservedTokens,
actualTokens = actualTokens,
returnRequest = returnRequest
})
settleGates(state.globalRules, state.globalGates, clock, {
leaseId = leaseId,
windowId = lease.globalWindowId,
reservedTokens = reservedTokens,
actualTokens = actualTokens,
returnRequest = returnRequest
})
end
function teach(state, source, lease, s, nowMs, random)
local cooling = coolAfter(
state,
source,
lease,
s,
nowMs,
random
)
if s.outcome == "dead" then
forceOpen(source.breaker, nowMs, s.retryAfterMs)
state.pool = nil
return __TS__ObjectAssign({}, APPLIED, {stateChanged = true, cooling = cooling})
end
local stateChanged = applyAttempt(
state,
source,
lease,
s,
nowMs,
random
)
if not stateChanged and not cooling then
return APPLIED
end
return __TS__ObjectAssign({}, APPLIED, {stateChanged = stateChanged, tripped = stateChanged and source.breaker.state == "open", cooling = cooling})
end
local NO_EFFECT = {
applied = false,
released = false,
stateChanged = false,
tripped = false,
cooling = false
}
local RELEASED = __TS__ObjectAssign({}, NO_EFFECT, {released = true})
APPLIED = __TS__ObjectAssign({}, RELEASED, {applied = true})
function settle(state, s, clock, random)
local lease = state.leases:remove(s.leaseId)
if lease == nil then
return NO_EFFECT
end
local ____clock_0 = clock
local nowMs = ____clock_0.nowMs
if lease.retry then
state.retriesInFlight = state.retriesInFlight - 1
end
local source = state.sources:get(lease.grant.source)
settleBooks(
state,
source,
lease,
s,
clock
)
if s.outcome == "success" then
state.lastProgressMs = nowMs
end
learnFrom(
state,
source,
lease,
s,
nowMs
)
local ____lease_grant_1 = lease.grant
local epoch = ____lease_grant_1.epoch
local leaseId = ____lease_grant_1.leaseId
if not isCurrent(source.breaker, leaseId, epoch) then
return RELEASED
end
if s.outcome == "success" then
source.lastError = nil
elseif s.lastError ~= nil then
source.lastError = s.lastError
end
return teach(
state,
source,
lease,
s,
nowMs,
random
)
end
function hear(state, v, clock, random)
local lease = state.leases:get(v.leaseId)
if lease == nil then
return NO_EFFECT
end
local ____clock_3 = clock
local nowMs = ____clock_3.nowMs
local source = state.sources:get(lease.grant.source)
local isCurrentVerdict = isCurrent(source.breaker, v.leaseId, lease.grant.epoch)
if v.kind == "overdue" then
if not isCurrentVerdict or lease.overdue ~= "no" or not state.scheduling.overdue then
return NO_EFFECT
end
local tripped = hearOverdue(
state,
source,
lease,
nowMs,
random
)
return __TS__ObjectAssign({}, NO_EFFECT, {applied = true, stateChanged = tripped, tripped = tripped})
end
state.lastProgressMs = nowMs
local stateChanged = hearFirstToken(
state,
source,
lease,
v,
isCurrentVerdict,
nowMs
)
return __TS__ObjectAssign({}, NO_EFFECT, {applied = isCurrentVerdict, stateChanged = stateChanged})
end
function reclaimExpired(state, clock)
local count = 0
state.leases:expire(
clock.nowMs,
function(lease)
local source = state.sources:get(lease.grant.source)
if source ~= nil then
handBackProbe(source.breaker, lease.grant.leaseId)
end
if lease.retry then
state.retriesInFlight = state.retriesInFlight - 1
end
count = count + 1
end
)
return count
end
____loaded["domain.settlement"] = {hear = hear, reclaimExpired = reclaimExpired, settle = settle}
end
do
local leaseEndMs
function leaseEndMs(nowMs, leaseTtlMs)
return math.ceil(nowMs + leaseTtlMs)
end
____loaded["domain.leases"] = {leaseEndMs = leaseEndMs}
end
do
local forgetFactsOf, newSourceRecord, newScopeState, keepFacts, forgetFacts
local ____from = ____loaded["lualib_bundle"]
local Map = ____from.Map
local __TS__New = ____from.__TS__New
local ____from = ____loaded["domain.breaker"]
local closedBreaker = ____from.closedBreaker
local ____from = ____loaded["domain.cooldown"]
local noCooldown = ____from.noCooldown
local ____from = ____loaded["domain.gates.gate"]
local emptyGateRecord = ____from.emptyGateRecord
local gateRules = ____from.gateRules
local ____from = ____loaded["domain.scheduling.budgets"]
local newBudgets = ____from.newBudgets
local ____from = ____loaded["domain.scheduling.evidence"]
local noEvidence = ____from.noEvidence
local ____from = ____loaded["domain.scheduling.gradient"]
local newGradient = ____from.newGradient
local ____from = ____loaded["domain.scheduling.health"]
local newHealth = ____from.newHealth
local ____from = ____loaded["domain.scheduling.pacer"]
local limitsInForce = ____from.limitsInForce
local lowerLimit = ____from.lowerLimit
local newPacer = ____from.newPacer
local ____from = ____loaded["domain.scheduling.token-learning"]
local newTokenBook = ____from.newTokenBook
function forgetFactsOf(source)
source.facts = nil
source.standing = nil
source.score = nil
end
function newSourceRecord(nowMs)
return {
gates = emptyGateRecord(),
breaker = closedBreaker(nowMs),
cooldown = noCooldown(),
pacer = newPacer(),
gradient = newGradient(),
evidence = noEvidence(),
health = newHealth(),
reclosedAtMs = -1e999,
turns = 0,
lastGrant = 0,
lastError = nil
}
end
function newScopeState(setup, nowMs, leases, bookOf, recordOf)
if bookOf == nil then
bookOf = newTokenBook
end
if recordOf == nil then
recordOf = function() return newSourceRecord(nowMs) end
end
local sources = __TS__New(Map)
local sourceList = {}
local models = __TS__New(Map)
local ____list = setup.sources
for ____at = 1, #____list do
local config = ____list[____at]
local name = config.name
local model = config.model
local sizes = models:get(model)
if sizes == nil then
sizes = {
book = bookOf(model),
want = nil,
tokens = 0
}
models:set(model, sizes)
end
local record = recordOf(name)
local ____config_2 = config
local ____gateRules_result_3 = gateRules(limitsInForce(record.pacer, config))
local ____record_gates_4 = record.gates
local ____record_breaker_5 = record.breaker
local ____record_cooldown_6 = record.cooldown
local ____record_pacer_7 = record.pacer
local ____record_gradient_8 = record.gradient
local ____record_evidence_9 = record.evidence
local ____record_health_10 = record.health
local ____sizes_11 = sizes
local ____lowerLimit_result_12 = lowerLimit(config.tpm, setup.global.tpm)
local ____record_reclosedAtMs_13 = record.reclosedAtMs
local ____opt_0 = setup.priceFactors
local source = {
config = ____config_2,
rules = ____gateRules_result_3,
gates = ____record_gates_4,
breaker = ____record_breaker_5,
cooldown = ____record_cooldown_6,
pacer = ____record_pacer_7,
gradient = ____record_gradient_8,
evidence = ____record_evidence_9,
health = ____record_health_10,
sizes = ____sizes_11,
mostTokens = ____lowerLimit_result_12,
reclosedAtMs = ____record_reclosedAtMs_13,
priceFactor = ____opt_0 and ____opt_0[name] or 1,
turns = record.turns,
lastGrant = record.lastGrant,
lastError = record.lastError,
facts = nil,
standing = nil,
score = nil
}
sources:set(name, source)
sourceList[#sourceList + 1] = source
end
return {
sources = sources,
sourceList = sourceList,
globalRules = gateRules(setup.global),
globalGates = emptyGateRecord(),
leases = leases,
breaker = setup.breaker,
selector = setup.selector,
scheduling = setup.scheduling,
budgets = newBudgets(),
retriesInFlight = 0,
workers = __TS__New(Map),
meanTokens = 0,
meanPromptTokens = 0,
grantsOfUpperClass = 0,
pool = nil,
leaseTtlMs = setup.leaseTtlMs,
turnFloor = 0,
grantCount = 0,
keepsFacts = false,
lineup = nil,
lastProgressMs = -1e999
}
end
function keepFacts(state)
state.keepsFacts = true
state.lineup = nil
local ____list = state.sourceList
for ____at = 1, #____list do
local source = ____list[____at]
forgetFactsOf(source)
source.sizes.want = nil
end
end
function forgetFacts(state, source)
local ____state_14 = state
local lineup = ____state_14.lineup
local ____state_globalRules_limits_15 = state.globalRules.limits
local maxConcurrency = ____state_globalRules_limits_15.maxConcurrency
local rpm = ____state_globalRules_limits_15.rpm
local tpm = ____state_globalRules_limits_15.tpm
forgetFactsOf(source)
if maxConcurrency == 0 and rpm == 0 and tpm == 0 then
if lineup == nil then
return
end
if lineup.stale == nil then
lineup.stale = source
elseif lineup.stale ~= source then
state.lineup = nil
end
return
end
state.lineup = nil
local ____list = state.sourceList
for ____at = 1, #____list do
local other = ____list[____at]
other.facts = nil
other.standing = nil
end
end
____loaded["domain.scope-state"] = {forgetFacts = forgetFacts, keepFacts = keepFacts, newScopeState = newScopeState, newSourceRecord = newSourceRecord}
end
do
local attemptTimeMs, successTimeMs
function attemptTimeMs(h, pool, outTokens)
local poolTtftMs = pool.ttftMs > 0 and pool.ttftMs or 1000
local ttftMs = h.ttftMs > 0 and h.ttftMs or poolTtftMs
local tpotMs = h.tpotMs > 0 and h.tpotMs or pool.tpotMs
return ttftMs + (outTokens or 256) * tpotMs
end
function successTimeMs(h, good, timeMs, waitMs)
return timeMs + (1 - good) / good * (timeMs > h.failMs and timeMs or h.failMs) + waitMs
end
____loaded["domain.scheduling.expected-time"] = {attemptTimeMs = attemptTimeMs, successTimeMs = successTimeMs}
end
do
local isPlain, chooseFromLineup, isBetter, scoreOf, demotionOf, steadyScore, steadyScoreNow, expectedMs, withoutFailedHere, choose, usualMs, noteTurn
local ____from = ____loaded["lualib_bundle"]
local __TS__ArrayIncludes = ____from.__TS__ArrayIncludes
local __TS__ArrayFilter = ____from.__TS__ArrayFilter
local __TS__ArraySome = ____from.__TS__ArraySome
local ____from = ____loaded["domain.lineup"]
local scoreFor = ____from.scoreFor
local ____from = ____loaded["domain.random"]
local jittered = ____from.jittered
local presentState = ____from.presentState
local ____from = ____loaded["domain.scheduling.expected-time"]
local attemptTimeMs = ____from.attemptTimeMs
local successTimeMs = ____from.successTimeMs
local ____from = ____loaded["domain.scheduling.health"]
local successShare = ____from.successShare
local ____from = ____loaded["domain.scheduling.in-force"]
local windowInForce = ____from.windowInForce
local ____from = ____loaded["domain.scheduling.pool"]
local poolOf = ____from.poolOf
local ____from = ____loaded["domain.scheduling.token-learning"]
local learnedOutTokens = ____from.learnedOutTokens
function isPlain(____bindingPattern0, ____bindingPattern1)
local selector
selector = ____bindingPattern0.selector
local limitedHere
local affinity
local ordered
ordered = ____bindingPattern1.ordered
affinity = ____bindingPattern1.affinity
limitedHere = ____bindingPattern1.limitedHere
return selector == "health_aware" and ordered ~= true and affinity == nil and #limitedHere == 0
end
function chooseFromLineup(state, lineup, want, nowMs, random)
local ____lineup_3 = lineup
local standings = ____lineup_3.standings
local scores = ____lineup_3.scores
scoreFor(lineup, want)
local best = nil
local bestRank = 1e999
local bestScore = 0
local at = -1
local drawn = presentState(random)
local ____list = standings
for ____at = 1, #____list do
local standing = ____list[____at]
at = at + 1
local rank = standing.rank
if standing.startable and rank <= bestRank then
local steady = scores[at + 1]
if steady < 0 then
steady = steadyScore(
state,
standing.source,
standing.waitMs,
want,
nowMs
)
scores[at + 1] = steady
end
drawn = (drawn * 16807 % 2147483647)
local score = (steady * (1 - 0.02 + 2 * 0.02 * (drawn / 2147483647)))
if best == nil or rank < bestRank or score < bestScore or score == bestScore and isBetter(standing, score, best, bestScore) then
best = standing
bestRank = rank
bestScore = score
end
end
end
random.state = drawn
return best
end
function isBetter(a, scoreA, b, scoreB)
if scoreA ~= scoreB then
return scoreA < scoreB
end
return a.source.lastGrant < b.source.lastGrant
end
function scoreOf(state, standing, want, nowMs, random)
local ____standing_4 = standing
local source = ____standing_4.source
local demotion = demotionOf(source, want)
if state.selector == "health_aware" then
return jittered(
steadyScore(
state,
source,
standing.waitMs,
want,
nowMs
) * demotion,
0.02,
random
)
end
local ____source_5 = source
local config = ____source_5.config
if state.selector == "round_robin" then
return (state.turnFloor > source.turns and state.turnFloor or source.turns) * demotion
end
local busy = state.leases:inflightOf(config.name)
local capacity = config.maxConcurrency > 0 and config.maxConcurrency or 32
return (busy + 1) / (capacity * config.weight) * demotion
end
function demotionOf(source, ____bindingPattern0)
local limitedHere
limitedHere = ____bindingPattern0.limitedHere
return #limitedHere > 0 and __TS__ArrayIncludes(limitedHere, source.config.name) and 4 or 1
end
function steadyScore(state, source, waitMs, want, nowMs)
if not state.keepsFacts then
return steadyScoreNow(
state,
source,
waitMs,
want,
nowMs
)
end
local kept = source.score
if kept ~= nil and kept.waitMs == waitMs and kept.maxTokens == want.maxTokens and kept.tag == want.tag then
return kept.value
end
local value = steadyScoreNow(
state,
source,
waitMs,
want,
nowMs
)
source.score = {tag = want.tag, maxTokens = want.maxTokens, waitMs = waitMs, value = value}
return value
end
function steadyScoreNow(state, source, waitMs, want, nowMs)
local ____source_6 = source
local config = ____source_6.config
local health = ____source_6.health
local window = windowInForce(state, source, nowMs)
local capacity = window == 1e999 and 32 or window
local used = math.min(
1,
(state.leases:inflightOf(config.name) + 1) / (capacity * config.weight)
)
local timeMs = expectedMs(state, source, want, nowMs)
local successMs = successTimeMs(
health,
successShare(health, nowMs),
timeMs,
waitMs
)
return successMs / (1 - 0.5 * used) * source.priceFactor
end
function expectedMs(state, source, want, nowMs)
local learned = learnedOutTokens(source.sizes.book, want.tag or "")
local ____temp_7
if learned == nil then
____temp_7 = nil
else
____temp_7 = math.min(learned, want.maxTokens or 1e999)
end
local outTokens = ____temp_7
return attemptTimeMs(
source.health,
poolOf(state, nowMs),
outTokens
)
end
function withoutFailedHere(standings, want)
if #want.failedHere == 0 then
return standings
end
local untried = __TS__ArrayFilter(
standings,
function(____, s) return not __TS__ArrayIncludes(want.failedHere, s.source.config.name) end
)
local able = __TS__ArraySome(
untried,
function(____, s) return s.source.breaker.state == "closed" and s.waitMs <= 30000 + 1 end
)
return able and untried or standings
end
function choose(state, standings, want, nowMs, random)
local ____state_0 = state
local lineup = ____state_0.lineup
if #standings > 1 and (lineup and lineup.standings) == standings and isPlain(state, want) then
return chooseFromLineup(
state,
lineup,
want,
nowMs,
random
)
end
local best = nil
local bestScore = 0
local own = nil
local ownScore = 0
local ____list = standings
for ____at = 1, #____list do
local standing = ____list[____at]
do
local __continue8
repeat
if not standing.startable then
__continue8 = true
break
end
if want.ordered == true then
return standing
end
if best ~= nil and standing.rank > best.rank then
__continue8 = true
break
end
local score = #standings == 1 and 0 or scoreOf(
state,
standing,
want,
nowMs,
random
)
if want.affinity ~= nil and standing.source.config.name == want.affinity then
own = standing
ownScore = score
end
if best == nil or standing.rank < best.rank or isBetter(standing, score, best, bestScore) then
best = standing
bestScore = score
end
__continue8 = true
until true
if not __continue8 then
break
end
end
end
if own == nil or best == nil or own.rank > best.rank or best.probe then
return best
end
return ownScore <= 1.5 * bestScore and own or best
end
function usualMs(state, source, want, nowMs)
local isKnown = learnedOutTokens(source.sizes.book, want.tag or "") ~= nil
return isKnown and source.health.tpotMs > 0 and expectedMs(state, source, want, nowMs) or source.health.durationMs
end
function noteTurn(state, ____bindingPattern0)
local source
source = ____bindingPattern0.source
local start = (state.turnFloor > source.turns and state.turnFloor or source.turns)
state.turnFloor = start
source.turns = start + 1 / source.config.weight
state.grantCount = state.grantCount + 1
source.lastGrant = state.grantCount
end
____loaded["domain.selection"] = {noteTurn = noteTurn, choose = choose, usualMs = usualMs, withoutFailedHere = withoutFailedHere}
end
do
local payFor, noteMeans, dueMs, grantTo
local ____from = ____loaded["domain.breaker"]
local startProbe = ____from.startProbe
local ____from = ____loaded["domain.cooldown"]
local noteGrant = ____from.noteGrant
local ____from = ____loaded["domain.gates.gate"]
local takeFromGates = ____from.takeFromGates
local ____from = ____loaded["domain.leases"]
local leaseEndMs = ____from.leaseEndMs
local ____from = ____loaded["domain.scheduling.budgets"]
local payHedge = ____from.payHedge
local payRetry = ____from.payRetry
local ____from = ____loaded["domain.scheduling.first-token"]
local firstTokenDueMs = ____from.firstTokenDueMs
local hedgeAfterMs = ____from.hedgeAfterMs
local ____from = ____loaded["domain.scheduling.pacer"]
local notePacedGrant = ____from.notePacedGrant
local ____from = ____loaded["domain.scheduling.pool"]
local poolOf = ____from.poolOf
local ____from = ____loaded["domain.scope-state"]
local forgetFacts = ____from.forgetFacts
local ____from = ____loaded["domain.selection"]
local noteTurn = ____from.noteTurn
local ____from = ____loaded["domain.standing"]
local estimatedTokens = ____from.estimatedTokens
function payFor(state, want)
if want.retry == true then
state.retriesInFlight = state.retriesInFlight + 1
if state.scheduling.retryBudget then
payRetry(state.budgets)
end
end
if want.hedge == true then
payHedge(state.budgets)
end
end
function noteMeans(state, estimate, want)
state.meanTokens = (state.meanTokens == 0 and estimate or state.meanTokens + 0.05 * (estimate - state.meanTokens))
if want.promptTokens ~= nil then
state.meanPromptTokens = (state.meanPromptTokens == 0 and want.promptTokens or state.meanPromptTokens + 0.05 * (want.promptTokens - state.meanPromptTokens))
end
end
function dueMs(state, ____bindingPattern0, want, nowMs)
local health
local config
config = ____bindingPattern0.config
health = ____bindingPattern0.health
if health.ttftMs == 0 then
return nil
end
return firstTokenDueMs({
ownTtftMs = health.ttftMs,
poolTtftMs = poolOf(state, nowMs).ttftMs,
ttftTimeoutMs = config.ttftTimeoutMs,
promptTokens = want.promptTokens,
meanPromptTokens = state.meanPromptTokens
})
end
function grantTo(state, want, chosen, passed, clock)
local ____chosen_0 = chosen
local source = ____chosen_0.source
local probe = ____chosen_0.probe
local waitMs = ____chosen_0.waitMs
local ____want_1 = want
local leaseId = ____want_1.leaseId
local ____clock_2 = clock
local nowMs = ____clock_2.nowMs
local estimate = estimatedTokens(state, source, want)
local tokens = (source.rules.tokens ~= nil or state.globalRules.tokens ~= nil) and estimate or 0
local startMs = nowMs + waitMs
local start = waitMs == 0 and clock or ({nowMs = startMs, wallMs = clock.wallMs})
local windowId = takeFromGates(
source.rules,
source.gates,
start,
tokens,
leaseId
)
local globalWindowId = takeFromGates(
state.globalRules,
state.globalGates,
start,
tokens,
leaseId
)
if state.scheduling.pacer then
notePacedGrant(source.pacer, source.config, startMs, nowMs)
end
if probe then
startProbe(source.breaker, leaseId)
end
noteGrant(source.cooldown, startMs)
noteTurn(state, chosen)
payFor(state, want)
noteMeans(state, estimate, want)
local ____leaseId_4 = leaseId
local ____source_config_name_5 = source.config.name
local ____waitMs_6 = waitMs
local ____source_breaker_epoch_7 = source.breaker.epoch
local ____probe_8 = probe
local ____windowId_9 = windowId
local ____state_leaseTtlMs_10 = state.leaseTtlMs
local ____state_scheduling_overdue_3
if state.scheduling.overdue then
____state_scheduling_overdue_3 = dueMs(state, source, want, nowMs)
else
____state_scheduling_overdue_3 = nil
end
local grant = {
leaseId = ____leaseId_4,
source = ____source_config_name_5,
startInMs = ____waitMs_6,
epoch = ____source_breaker_epoch_7,
probe = ____probe_8,
windowId = ____windowId_9,
reservedTokens = tokens,
leaseTtlMs = ____state_leaseTtlMs_10,
firstTokenDueMs = ____state_scheduling_overdue_3,
hedgeAfterMs = hedgeAfterMs(poolOf(state, nowMs).ttftMs),
passedOver = passed
}
state.leases:add({
grant = grant,
globalWindowId = globalWindowId,
expiresAtMs = leaseEndMs(nowMs, state.leaseTtlMs),
startedAtMs = startMs,
inflight = state.leases:inflightOf(source.config.name) + 1,
promptTokens = want.promptTokens,
tag = want.tag or "",
retry = want.retry == true,
overdue = "no",
ttftMs = 0
})
if state.keepsFacts then
forgetFacts(state, source)
end
return grant
end
____loaded["domain.grant"] = {grantTo = grantTo}
end
do
local greatest, leastWaiting, goesFirst, forgetSilent, visit, mustYield, waitsForClass, noteWaiting, rankOf, nextInLine
local ____from = ____loaded["lualib_bundle"]
local __TS__Iterator = ____from.__TS__Iterator
local __TS__Spread = ____from.__TS__Spread
function greatest(book)
local most = 0
for ____, ____value in __TS__Iterator(book:values()) do
local virtualTime = ____value.virtualTime
if virtualTime > most then
most = virtualTime
end
end
return most
end
function leastWaiting(book, ____self, nowMs)
local least = nil
for ____, other in __TS__Iterator(book:values()) do
do
local __continue10
repeat
if other == ____self or not (other.waiting and nowMs - other.lastVisitMs <= 1500) then
__continue10 = true
break
end
if least == nil or other.virtualTime < least then
least = other.virtualTime
end
__continue10 = true
until true
if not __continue10 then
break
end
end
end
return least
end
function goesFirst(a, b, isLowerTurn)
if a.priority ~= b.priority then
return a.priority < b.priority ~= isLowerTurn
end
return a.virtualTime < b.virtualTime
end
function forgetSilent(book, nowMs)
local ____list = {__TS__Spread(book)}
for ____at = 1, #____list do
local ____value = ____list[____at]
local name = ____value[1]
local worker = ____value[2]
if nowMs - worker.lastVisitMs > 15000 then
book:delete(name)
end
end
end
function visit(book, name, nowMs)
local worker = book:get(name)
if worker == nil then
forgetSilent(book, nowMs)
worker = {virtualTime = 0, waiting = false, priority = 0, lastVisitMs = nowMs}
book:set(name, worker)
end
if not worker.waiting and book.size > 1 then
local presentTime = leastWaiting(book, worker, nowMs) or greatest(book)
worker.virtualTime = (presentTime > worker.virtualTime and presentTime or worker.virtualTime)
end
worker.lastVisitMs = nowMs
return worker
end
function mustYield(book, ____self, priority, isLowerTurn, nowMs)
if book.size == 1 then
return false
end
for ____, other in __TS__Iterator(book:values()) do
do
local __continue17
repeat
if other == ____self or not (other.waiting and nowMs - other.lastVisitMs <= 1500) then
__continue17 = true
break
end
if other.priority < priority and not isLowerTurn then
return true
end
if other.priority == priority and ____self.virtualTime > other.virtualTime + 4 then
return true
end
__continue17 = true
until true
if not __continue17 then
break
end
end
end
return false
end
function waitsForClass(book, ____self, priority, nowMs)
if book.size == 1 then
return false
end
for ____, other in __TS__Iterator(book:values()) do
if other ~= ____self and (other.waiting and nowMs - other.lastVisitMs <= 1500) and other.priority < priority then
return true
end
end
return false
end
function noteWaiting(____self, wants, answers)
____self.waiting = false
do
local n = 0
while n < #wants do
do
local __continue29
repeat
local answer = answers[n + 1]
if not (answer.kind ~= nil) or answer.kind == "never" or answer.kind == "deadline" then
__continue29 = true
break
end
local ____wants_index_0 = wants[n + 1]
local priority = ____wants_index_0.priority
local hedge = ____wants_index_0.hedge
if hedge == true then
__continue29 = true
break
end
____self.priority = ____self.waiting and (priority < ____self.priority and priority or ____self.priority) or priority
____self.waiting = true
__continue29 = true
until true
if not __continue29 then
break
end
end
n = n + 1
end
end
end
function rankOf(book, ____self, nowMs)
local rank = 0
for ____, other in __TS__Iterator(book:values()) do
if other ~= ____self and (other.waiting and nowMs - other.lastVisitMs <= 1500) and other.virtualTime < ____self.virtualTime then
rank = rank + 1
end
end
return rank
end
function nextInLine(book, ____self, isLowerTurn, nowMs)
local name = nil
local best = nil
for ____, ____value in __TS__Iterator(book) do
local candidate = ____value[1]
local worker = ____value[2]
do
local __continue37
repeat
if worker == ____self or not (worker.waiting and nowMs - worker.lastVisitMs <= 1500) then
__continue37 = true
break
end
if best ~= nil and not goesFirst(worker, best, isLowerTurn) then
__continue37 = true
break
end
name = candidate
best = worker
__continue37 = true
until true
if not __continue37 then
break
end
end
end
return name
end
____loaded["domain.scheduling.fairness"] = {mustYield = mustYield, noteWaiting = noteWaiting, rankOf = rankOf, visit = visit, waitsForClass = waitsForClass, nextInLine = nextInLine}
end
do
local firstOfLowerClass, noteClass
local ____from = ____loaded["lualib_bundle"]
local __TS__ArrayFindIndex = ____from.__TS__ArrayFindIndex
function firstOfLowerClass(line, wants)
local ____wants_index_0 = wants[line[1] + 1]
local priority = ____wants_index_0.priority
if wants[line[#line] + 1].priority <= priority then
return -1
end
return __TS__ArrayFindIndex(
line,
function(____, position) return wants[position + 1].priority > priority end
)
end
function noteClass(state, line, wants, granted, isLowerTurn)
if isLowerTurn then
state.grantsOfUpperClass = 0
elseif wants[line[#line] + 1].priority > granted.priority then
state.grantsOfUpperClass = state.grantsOfUpperClass + 1
end
end
____loaded["domain.scheduling.line"] = {firstOfLowerClass = firstOfLowerClass, noteClass = noteClass}
end
do
local matchingSize, isTwoSided, mismatch
function matchingSize(tokensPerMinute, requestsPerS)
if tokensPerMinute <= 0 or requestsPerS <= 0 or requestsPerS == 1e999 then
return 0
end
return tokensPerMinute / 60 / requestsPerS
end
function isTwoSided(sizes, meanTokens)
local below = false
local above = false
local ____list = sizes
for ____at = 1, #____list do
local size = ____list[____at]
do
local __continue5
repeat
if size == 0 then
__continue5 = true
break
end
if size < meanTokens then
below = true
elseif size > meanTokens then
above = true
end
__continue5 = true
until true
if not __continue5 then
break
end
end
end
return below and above
end
function mismatch(tokens, size)
local ratio = (tokens > 1 and tokens or 1) / size
return ratio < 1 and 1 / ratio or ratio
end
____loaded["domain.scheduling.size-match"] = {isTwoSided = isTwoSided, matchingSize = matchingSize, mismatch = mismatch}
end
do
local sizeOf, standingFor, canMatchSizes, betterFitting
local ____from = ____loaded["lualib_bundle"]
local __TS__ArrayIncludes = ____from.__TS__ArrayIncludes
local ____from = ____loaded["domain.standing"]
local estimatedTokens = ____from.estimatedTokens
local standingOf = ____from.standingOf
local ____from = ____loaded["domain.scheduling.in-force"]
local rateInForce = ____from.rateInForce
local ____from = ____loaded["domain.scheduling.size-match"]
local isTwoSided = ____from.isTwoSided
local matchingSize = ____from.matchingSize
local mismatch = ____from.mismatch
local ____from = ____loaded["domain.scheduling.pacer"]
local lowerLimit = ____from.lowerLimit
function sizeOf(state, source, nowMs)
return matchingSize(
(lowerLimit(source.config.tpm, source.pacer.learnedTpm)),
rateInForce(state, source, nowMs)
)
end
function standingFor(state, source, want, clock)
local ____source_config_0 = source.config
local name = ____source_config_0.name
if not __TS__ArrayIncludes(want.candidates, name) or __TS__ArrayIncludes(want.failedHere, name) or want.ordered == true then
return nil
end
if want.hedge == true or state.leases:get(want.leaseId) ~= nil then
return nil
end
if want.retry == true and state.scheduling.retryBudget and not (state.budgets.retryTokens >= 1 or state.retriesInFlight < 3) then
return nil
end
local standing = standingOf(state, source, want, clock)
return standing.startable and standing or nil
end
function canMatchSizes(state, nowMs)
if not state.scheduling.sizeMatching or state.meanTokens == 0 then
return false
end
local sizes = {}
local ____list = state.sourceList
for ____at = 1, #____list do
local source = ____list[____at]
if source.breaker.state == "closed" then
sizes[#sizes + 1] = sizeOf(state, source, nowMs)
end
end
return isTwoSided(sizes, state.meanTokens)
end
function betterFitting(state, source, line, from, wants, clock)
local size = sizeOf(state, source, clock.nowMs)
if size == 0 then
return nil
end
local head = wants[line[from + 1] + 1]
if (head.skips or 0) >= 24 or head.ordered == true then
return nil
end
local best = mismatch(
estimatedTokens(state, source, head),
size
)
local found = nil
do
local at = from + 1
while at < #line and at < from + 8 do
do
local __continue12
repeat
local want = wants[line[at + 1] + 1]
if want.priority ~= head.priority then
break
end
local isOverdue = (want.skips or 0) >= 24
local badness = mismatch(
estimatedTokens(state, source, want),
size
)
if not isOverdue and not (badness * 1.0512710963760241 < best) then
__continue12 = true
break
end
local standing = standingFor(state, source, want, clock)
if standing == nil then
__continue12 = true
break
end
found = {at = at, standing = standing}
best = badness
if isOverdue then
break
end
__continue12 = true
until true
if not __continue12 then
break
end
end
at = at + 1
end
end
return found
end
____loaded["domain.scheduling.matching"] = {betterFitting = betterFitting, canMatchSizes = canMatchSizes}
end
do
local admitOne, admitLine, leaveLine, matchedChoice, grantOf, answerOf, keyOf, passesClass, decide, isHopeless, decideHedge, hasRoomForHedge, yieldMs, book, passedBy, admitAll
local ____from = ____loaded["lualib_bundle"]
local Map = ____from.Map
local __TS__New = ____from.__TS__New
local __TS__ArrayMap = ____from.__TS__ArrayMap
local __TS__ArraySplice = ____from.__TS__ArraySplice
local __TS__ObjectAssign = ____from.__TS__ObjectAssign
local __TS__ArrayFilter = ____from.__TS__ArrayFilter
local ____from = ____loaded["domain.grant"]
local grantTo = ____from.grantTo
local ____from = ____loaded["domain.leases"]
local leaseEndMs = ____from.leaseEndMs
local ____from = ____loaded["domain.refusal"]
local NONE_PASSED = ____from.NONE_PASSED
local passedOver = ____from.passedOver
local refuse = ____from.refuse
local refuseFor = ____from.refuseFor
local ____from = ____loaded["domain.scheduling.fairness"]
local mustYield = ____from.mustYield
local noteWaiting = ____from.noteWaiting
local rankOf = ____from.rankOf
local visit = ____from.visit
local waitsForClass = ____from.waitsForClass
local ____from = ____loaded["domain.scheduling.in-force"]
local rateInForce = ____from.rateInForce
local windowInForce = ____from.windowInForce
local ____from = ____loaded["domain.scheduling.line"]
local firstOfLowerClass = ____from.firstOfLowerClass
local noteClass = ____from.noteClass
local ____from = ____loaded["domain.scheduling.matching"]
local betterFitting = ____from.betterFitting
local canMatchSizes = ____from.canMatchSizes
local ____from = ____loaded["domain.scope-state"]
local keepFacts = ____from.keepFacts
local ____from = ____loaded["domain.selection"]
local choose = ____from.choose
local usualMs = ____from.usualMs
local withoutFailedHere = ____from.withoutFailedHere
local ____from = ____loaded["domain.standing"]
local standingOf = ____from.standingOf
local standingsOf = ____from.standingsOf
function admitOne(desk, want)
local earlier = grantOf(desk, want)
if earlier ~= nil then
return earlier
end
local decision = decide(desk, want)
if decision.kind ~= nil then
return decision
end
if passesClass(desk, want) then
desk.state.grantsOfUpperClass = 0
end
return book(desk, want, decision)
end
function admitLine(desk, wants)
local ____desk_0 = desk
local state = ____desk_0.state
local clock = ____desk_0.clock
local answers = {}
local heldBack = __TS__New(Map)
keepFacts(state)
local line = __TS__ArrayMap(
wants,
function(____, _, position) return position end
)
local matches = canMatchSizes(state, clock.nowMs)
local lowerWasRefused = false
while #line > 0 do
do
local __continue10
repeat
local lower = (state.grantsOfUpperClass >= 9) and not lowerWasRefused and firstOfLowerClass(line, wants) or -1
local at = (lower > 0 and lower or 0)
local position = line[at + 1]
local want = wants[position + 1]
local answer = grantOf(desk, want) or answerOf(want, heldBack) or decide(desk, want)
if answer.kind ~= nil and lower > 0 then
lowerWasRefused = true
__continue10 = true
break
end
if answer.leaseId ~= nil then
if answer.kind ~= nil and (answer.kind ~= "never" and answer.kind ~= "deadline" and want.hedge ~= true) then
heldBack:set(
keyOf(want),
answer
)
end
answers[position + 1] = answer
leaveLine(line, at)
__continue10 = true
break
end
local choice = answer
local ____matches_1
if matches then
____matches_1 = betterFitting(
state,
choice.chosen.source,
line,
at,
wants,
clock
)
else
____matches_1 = nil
end
local match = ____matches_1
if match ~= nil then
at = match.at
position = line[at + 1]
want = wants[position + 1]
choice = matchedChoice(desk, want, match.standing)
end
noteClass(
state,
line,
wants,
want,
lower > 0 or passesClass(desk, want)
)
answers[position + 1] = book(desk, want, choice)
leaveLine(line, at)
__continue10 = true
until true
if not __continue10 then
break
end
end
end
return answers
end
function leaveLine(line, at)
if at == 0 then
table.remove(line, 1)
else
__TS__ArraySplice(line, at, 1)
end
end
function matchedChoice(____bindingPattern0, want, chosen)
local clock
local state
state = ____bindingPattern0.state
clock = ____bindingPattern0.clock
local all = __TS__ArrayMap(
want.candidates,
function(____, name) return name == chosen.source.config.name and chosen or standingOf(
state,
state.sources:get(name),
want,
clock
) end
)
return {
chosen = chosen,
all = all,
considered = withoutFailedHere(all, want)
}
end
function grantOf(____bindingPattern0, want)
local clock
local state
state = ____bindingPattern0.state
clock = ____bindingPattern0.clock
local live = state.leases:get(want.leaseId)
if live == nil then
return nil
end
state.leases:renew(
want.leaseId,
leaseEndMs(clock.nowMs, state.leaseTtlMs)
)
return live.grant
end
function answerOf(want, heldBack)
local ____temp_2
if heldBack.size == 0 then
____temp_2 = nil
else
____temp_2 = heldBack:get(keyOf(want))
end
local ahead = ____temp_2
local ____temp_3
if ahead == nil then
____temp_3 = nil
else
____temp_3 = __TS__ObjectAssign({}, ahead, {leaseId = want.leaseId})
end
return ____temp_3
end
function keyOf(____bindingPattern0)
local retry
local failedHere
local candidates
candidates = ____bindingPattern0.candidates
failedHere = ____bindingPattern0.failedHere
retry = ____bindingPattern0.retry
return (((table.concat(candidates, ",") .. "|") .. table.concat(failedHere, ",")) .. "|") .. tostring(retry == true)
end
function passesClass(____bindingPattern0, want)
local clock
local ____self
local state
state = ____bindingPattern0.state
____self = ____bindingPattern0.self
clock = ____bindingPattern0.clock
return ____self ~= nil and (state.grantsOfUpperClass >= 9) and waitsForClass(state.workers, ____self, want.priority, clock.nowMs)
end
function decide(desk, want)
local ____desk_4 = desk
local state = ____desk_4.state
local clock = ____desk_4.clock
local all = standingsOf(state, want, clock)
local considered = withoutFailedHere(all, want)
if isHopeless(desk, want, considered) then
return refuseFor("deadline", want, 0, all)
end
if want.hedge == true then
return decideHedge(desk, want, considered)
end
local chosen = choose(
state,
considered,
want,
clock.nowMs,
desk.random
)
if chosen == nil then
return refuse(want, all, considered, state.scheduling.prefetchMs)
end
if want.retry == true and state.scheduling.retryBudget and not (state.budgets.retryTokens >= 1 or state.retriesInFlight < 3) then
return refuseFor("fairness", want, 1000, all)
end
local ____desk_5 = desk
local ____self = ____desk_5.self
if ____self ~= nil and mustYield(
state.workers,
____self,
want.priority,
(state.grantsOfUpperClass >= 9),
clock.nowMs
) then
return refuseFor(
"fairness",
want,
yieldMs(desk, ____self),
all
)
end
return {chosen = chosen, all = all, considered = considered}
end
function isHopeless(____bindingPattern0, want, standings)
local clock
local state
state = ____bindingPattern0.state
clock = ____bindingPattern0.clock
local ____want_6 = want
local remainingMs = ____want_6.remainingMs
if remainingMs == nil or not state.scheduling.deadlineRefusal then
return false
end
local couldStart = false
local ____list = standings
for ____at = 1, #____list do
local ____value = ____list[____at]
local source = ____value.source
local waitMs = ____value.waitMs
local reason = ____value.reason
if not (source.health.samples >= 10 and clock.nowMs - source.health.lastSuccessMs <= 30000) then
return false
end
local leastMs = reason ~= nil and (reason == "concurrency" or reason == "global_concurrency" or reason == "half_open") and 0 or waitMs
if leastMs + usualMs(state, source, want, clock.nowMs) <= remainingMs then
return false
end
if leastMs <= remainingMs then
couldStart = true
end
end
return couldStart
end
function decideHedge(____bindingPattern0, want, standings)
local random
local clock
local state
state = ____bindingPattern0.state
clock = ____bindingPattern0.clock
random = ____bindingPattern0.random
if (state.budgets.hedgeTokens >= 1) then
local roomy = __TS__ArrayFilter(
standings,
function(____, standing) return hasRoomForHedge(state, standing, clock.nowMs) end
)
local chosen = choose(
state,
roomy,
want,
clock.nowMs,
random
)
if chosen ~= nil then
return {chosen = chosen, all = standings, considered = standings}
end
end
return refuseFor("fairness", want, 0, standings)
end
function hasRoomForHedge(state, ____bindingPattern0, nowMs)
local waitMs
local probe
local startable
local source
source = ____bindingPattern0.source
startable = ____bindingPattern0.startable
probe = ____bindingPattern0.probe
waitMs = ____bindingPattern0.waitMs
if not startable or probe or waitMs > 50 then
return false
end
local inflight = state.leases:inflightOf(source.config.name)
return inflight <= 0.8 * windowInForce(state, source, nowMs)
end
function yieldMs(____bindingPattern0, ____self)
local clock
local state
state = ____bindingPattern0.state
clock = ____bindingPattern0.clock
local ratePerS = 0
local ____list = state.sourceList
for ____at = 1, #____list do
local source = ____list[____at]
ratePerS = ratePerS + rateInForce(state, source, clock.nowMs)
end
local rank = rankOf(state.workers, ____self, clock.nowMs)
local waitMs = (ratePerS == 1e999 or ratePerS == 0) and 0 or rank * 1000 / ratePerS
return math.min(
1000,
(waitMs > 100 and waitMs or 100)
)
end
function book(desk, want, choice)
if desk.self ~= nil then
local ____desk_self_7, ____virtualTime_8 = desk.self, "virtualTime"
____desk_self_7[____virtualTime_8] = ____desk_self_7[____virtualTime_8] + 1
end
return grantTo(
desk.state,
want,
choice.chosen,
passedBy(desk.state, choice),
desk.clock
)
end
function passedBy(____bindingPattern0, ____bindingPattern1)
local lineup
lineup = ____bindingPattern0.lineup
local considered
local all
local chosen
chosen = ____bindingPattern1.chosen
all = ____bindingPattern1.all
considered = ____bindingPattern1.considered
local isWhole = lineup ~= nil and lineup.standings == all and considered == all
return isWhole and lineup.waiting == 0 and NONE_PASSED or passedOver(all, considered, chosen)
end
function admitAll(state, wants, worker, clock, random)
local ____self = state.scheduling.fairness and visit(state.workers, worker, clock.nowMs) or nil
local desk = {state = state, clock = clock, random = random, self = ____self}
state.keepsFacts = false
local answers = #wants == 1 and ({admitOne(desk, wants[1])}) or admitLine(desk, wants)
state.keepsFacts = false
state.lineup = nil
if ____self ~= nil then
noteWaiting(____self, wants, answers)
end
return answers
end
____loaded["domain.admission"] = {admitAll = admitAll}
end
do
local evacuationAgeMs
local ____from = ____loaded["domain.scheduling.first-token"]
local firstTokenDueMs = ____from.firstTokenDueMs
local ____from = ____loaded["domain.scheduling.pool"]
local poolOf = ____from.poolOf
function evacuationAgeMs(state, name, nowMs)
if not state.scheduling.evacuate then
return nil
end
local ____temp_0 = state.sources:get(name)
local config = ____temp_0.config
local health = ____temp_0.health
local dueMs = firstTokenDueMs({
ownTtftMs = health.ttftMs,
poolTtftMs = poolOf(state, nowMs).ttftMs,
ttftTimeoutMs = config.ttftTimeoutMs,
promptTokens = nil,
meanPromptTokens = 0
})
return (dueMs or config.ttftTimeoutMs) / 2
end
____loaded["domain.scheduling.evacuation"] = {evacuationAgeMs = evacuationAgeMs}
end
do
local wokenBy
local ____from = ____loaded["lualib_bundle"]
local __TS__ArrayFind = ____from.__TS__ArrayFind
local ____from = ____loaded["domain.standing"]
local hasRoomNow = ____from.hasRoomNow
local ____from = ____loaded["domain.scheduling.fairness"]
local nextInLine = ____from.nextInLine
function wokenBy(state, released, worker, clock)
local first = unpack(released, 1, 1)
if first == nil then
return nil
end
if not state.scheduling.fairness or state.workers.size <= 1 then
return {source = first}
end
local next = nextInLine(
state.workers,
state.workers:get(worker) or nil,
(state.grantsOfUpperClass >= 9),
clock.nowMs
)
if next == nil then
return {source = first}
end
local usable = __TS__ArrayFind(
released,
function(____, name) return hasRoomNow(
state,
state.sources:get(name),
clock
) end
)
local ____temp_0
if usable == nil then
____temp_0 = nil
else
____temp_0 = {source = usable, worker = next}
end
return ____temp_0
end
____loaded["domain.scheduling.wake"] = {wokenBy = wokenBy}
end
do
local applyAccounts, noteEffect, answerWants, NO_GRANTS, NO_REFUSALS, NONE_APPLIED, runTick
local ____from = ____loaded["lualib_bundle"]
local __TS__ObjectAssign = ____from.__TS__ObjectAssign
local ____from = ____loaded["domain.admission"]
local admitAll = ____from.admitAll
local ____from = ____loaded["domain.leases"]
local leaseEndMs = ____from.leaseEndMs
local ____from = ____loaded["domain.random"]
local seededRandom = ____from.seededRandom
local ____from = ____loaded["domain.scheduling.evacuation"]
local evacuationAgeMs = ____from.evacuationAgeMs
local ____from = ____loaded["domain.scheduling.wake"]
local wokenBy = ____from.wokenBy
local ____from = ____loaded["domain.settlement"]
local hear = ____from.hear
local reclaimExpired = ____from.reclaimExpired
local settle = ____from.settle
function applyAccounts(state, ____bindingPattern0, clock, random, events, released)
local renew
local verdicts
local settles
settles = ____bindingPattern0.settles
verdicts = ____bindingPattern0.verdicts
renew = ____bindingPattern0.renew
if #settles + #verdicts + #renew == 0 then
return NONE_APPLIED
end
local applied = {}
local ____list = settles
for ____at = 1, #____list do
local s = ____list[____at]
local ____opt_0 = state.leases:get(s.leaseId)
local source = ____opt_0 and ____opt_0.grant.source or s.source
applied[#applied + 1] = noteEffect(
state,
source,
settle(state, s, clock, random),
clock,
events,
released
)
end
local ____list = verdicts
for ____at = 1, #____list do
local v = ____list[____at]
applied[#applied + 1] = noteEffect(
state,
v.source,
hear(state, v, clock, random),
clock,
events,
released
)
end
local ____list = renew
for ____at = 1, #____list do
local leaseId = ____list[____at]
applied[#applied + 1] = state.leases:renew(
leaseId,
leaseEndMs(clock.nowMs, state.leaseTtlMs)
)
end
return applied
end
function noteEffect(state, source, effect, clock, events, released)
if effect.stateChanged then
local ____effect_tripped_2
if effect.tripped then
____effect_tripped_2 = evacuationAgeMs(state, source, clock.nowMs)
else
____effect_tripped_2 = nil
end
local evacuateAfterMs = ____effect_tripped_2
events[#events + 1] = __TS__ObjectAssign({type = "state", source = source}, evacuateAfterMs == nil and ({}) or ({evacuateAfterMs = evacuateAfterMs}))
elseif effect.released then
released[#released + 1] = source
end
if effect.cooling and state.scheduling.prefetchMs > 0 then
events[#events + 1] = {type = "cooling", source = source}
end
return effect.applied
end
function answerWants(state, batch, clock, random, applied)
if #batch.wants == 0 then
return {grants = NO_GRANTS, refusals = NO_REFUSALS, hintMs = nil, applied = applied}
end
local grants = nil
local refusals = nil
local hintMs = nil
for ____, answer in ipairs(admitAll(
state,
batch.wants,
batch.worker,
clock,
random
)) do
if answer.kind ~= nil then
if refusals == nil then
refusals = {}
end
refusals[#refusals + 1] = answer
if answer.kind ~= "never" then
hintMs = math.min(hintMs or answer.waitHintMs, answer.waitHintMs)
end
else
if grants == nil then
grants = {}
end
grants[#grants + 1] = answer
end
end
return {grants = grants or NO_GRANTS, refusals = refusals or NO_REFUSALS, hintMs = hintMs, applied = applied}
end
NO_GRANTS = {}
NO_REFUSALS = {}
local NONE_RELEASED = {}
NONE_APPLIED = {}
local CAPACITY_RECLAIMED = {type = "capacity", source = "*"}
function runTick(state, batch, clock)
local events = reclaimExpired(state, clock) > 0 and ({CAPACITY_RECLAIMED}) or ({})
local random = seededRandom(batch.seed)
local released = #batch.settles == 0 and NONE_RELEASED or ({})
local applied = applyAccounts(
state,
batch,
clock,
random,
events,
released
)
local reply = answerWants(
state,
batch,
clock,
random,
applied
)
local woken = wokenBy(state, released, batch.worker, clock)
if woken ~= nil then
events[#events + 1] = __TS__ObjectAssign({type = "capacity"}, woken)
end
return {reply = reply, events = events}
end
____loaded["domain.tick-rules"] = {runTick = runTick}
end
do
local packedList, flattenScope, restoreScope
local ____from = ____loaded["lualib_bundle"]
local __TS__ArrayPush = ____from.__TS__ArrayPush
function packedList(values)
return string.sub(
cmsgpack.pack(values),
#values < 16 and 2 or 4
)
end
function flattenScope(state)
local ____state_0 = state
local globalGates = ____state_0.globalGates
local pool = ____state_0.pool
local values = {
3,
state.budgets.retryTokens,
state.budgets.hedgeTokens,
state.retriesInFlight,
state.meanTokens,
state.meanPromptTokens,
state.grantsOfUpperClass,
state.turnFloor,
state.grantCount,
state.lastProgressMs,
globalGates.windowId,
globalGates.windowRequests,
globalGates.windowTokens,
globalGates.requestTatMs,
globalGates.tokenTatMs,
globalGates.newestGrant
}
if pool ~= nil then
__TS__ArrayPush(
values,
pool.measuredAtMs,
pool.ttftMs,
pool.tpotMs,
pool.failShare
)
end
return values
end
function restoreScope(state, v)
state.budgets.retryTokens = v[2]
state.budgets.hedgeTokens = v[3]
state.retriesInFlight = v[4]
state.meanTokens = v[5]
state.meanPromptTokens = v[6]
state.grantsOfUpperClass = v[7]
state.turnFloor = v[8]
state.grantCount = v[9]
state.lastProgressMs = (v[10])
local ____state_1 = state
local globalGates = ____state_1.globalGates
globalGates.windowId = v[11]
globalGates.windowRequests = v[12]
globalGates.windowTokens = v[13]
globalGates.requestTatMs = v[14]
globalGates.tokenTatMs = v[15]
globalGates.newestGrant = v[16]
if #v > 16 then
state.pool = {measuredAtMs = v[17], ttftMs = v[18], tpotMs = v[19], failShare = v[20]}
end
end
____loaded["layout"] = {packedList = packedList, flattenScope = flattenScope, restoreScope = restoreScope}
end
do
local STATE_KEY, GRANTS_KEY
STATE_KEY = "s" .. tostring(3)
GRANTS_KEY = "g" .. tostring(3)
____loaded["keys"] = {GRANTS_KEY = GRANTS_KEY, STATE_KEY = STATE_KEY}
end
do
local knownOf, lower, hasOthers, DIMENSIONS, commonLimits, areLimits
local ____from = ____loaded["lualib_bundle"]
local __TS__ObjectAssign = ____from.__TS__ObjectAssign
local __TS__ArrayMap = ____from.__TS__ArrayMap
local __TS__ArraySome = ____from.__TS__ArraySome
local ____from = ____loaded["domain.scheduling.pacer"]
local lowerLimit = ____from.lowerLimit
function knownOf(packed, nowMs)
local known = packed == nil and ({}) or cmsgpack.unpack(packed)
local valid = {}
for name in pairs(known) do
local limits = known[name]
local ____list = DIMENSIONS
for ____at = 1, #____list do
local dimension = ____list[____at]
if limits[dimension][2] <= nowMs then
limits[dimension] = {0, 0}
end
end
if __TS__ArraySome(
DIMENSIONS,
function(____, dimension) return limits[dimension][1] > 0 end
) then
valid[name] = limits
end
end
return valid
end
function lower(known, name, own, untilMs)
local limits = known[name] or ({maxConcurrency = {0, 0}, rpm = {0, 0}, tpm = {0, 0}})
known[name] = limits
local differs = false
local common = {maxConcurrency = 0, rpm = 0, tpm = 0}
local ____list = DIMENSIONS
for ____at = 1, #____list do
local dimension = ____list[____at]
local lowest = lowerLimit(own[dimension], limits[dimension][1])
if lowest == own[dimension] and lowest > 0 then
limits[dimension] = {lowest, untilMs}
elseif lowest ~= own[dimension] then
differs = true
end
common[dimension] = lowest
end
return differs and __TS__ObjectAssign({}, own, common) or own
end
function hasOthers(known, untilMs)
for name in pairs(known) do
local ____list = DIMENSIONS
for ____at = 1, #____list do
local dimension = ____list[____at]
local limit, ____until = unpack(known[name][dimension], 1, 2)
if limit > 0 and ____until ~= untilMs then
return true
end
end
end
return false
end
DIMENSIONS = {"maxConcurrency", "rpm", "tpm"}
local NOTHING_NEW = {}
function commonLimits(setup, stored, nowMs)
local ____setup_0 = setup
local limitsId = ____setup_0.limitsId
local leaseTtlMs = ____setup_0.leaseTtlMs
local text = stored["~~"]
local latestId, toldAtMs = unpack(
text == nil and ({"", 0}) or cmsgpack.unpack(text),
1,
2
)
if latestId == limitsId and nowMs - toldAtMs < leaseTtlMs / 3 then
return {setup = setup, changed = NOTHING_NEW}
end
local known = latestId == limitsId and ({}) or knownOf(stored["~"], nowMs)
local lowered = __TS__ObjectAssign(
{},
setup,
{global = lower(known, "*", setup.global, nowMs + leaseTtlMs)}
)
local sources = __TS__ArrayMap(
setup.sources,
function(____, source) return lower(known, source.name, source, nowMs + leaseTtlMs) end
)
local differs = lowered.global ~= setup.global or __TS__ArraySome(
sources,
function(____, source, at) return source ~= setup.sources[at + 1] end
)
local id = (differs or hasOthers(known, nowMs + leaseTtlMs)) and "" or limitsId
local changed = {
"~~",
cmsgpack.pack({id, nowMs}),
"~",
cmsgpack.pack(known)
}
return {
setup = __TS__ObjectAssign({}, lowered, {sources = sources}),
changed = changed
}
end
function areLimits(value)
if type(value) ~= "table" then
return false
end
for name in pairs(value) do
local limits = value[name]
if type(limits) ~= "table" then
return false
end
local ____list = DIMENSIONS
for ____at = 1, #____list do
local dimension = ____list[____at]
local entry = limits[dimension]
if type(entry) ~= "table" or type(entry[1]) ~= "number" or type(entry[2]) ~= "number" then
return false
end
end
end
return true
end
____loaded["common-limits"] = {areLimits = areLimits, commonLimits = commonLimits}
end
do
local LEASE_TYPES, flattenLease, restoreLease
LEASE_TYPES = {
"number",
"string",
"number",
"boolean",
"number",
"number",
"number",
"number",
"number",
"number",
"number",
"string",
"boolean",
"string",
"table"
}
function flattenLease(lease)
local ____lease_0 = lease
local grant = ____lease_0.grant
local windowId = grant.windowId or false
local globalWindowId = lease.globalWindowId or false
local firstTokenDueMs = grant.firstTokenDueMs or false
local hedgeAfterMs = grant.hedgeAfterMs or false
local promptTokens = lease.promptTokens or false
return {
3,
grant.source,
grant.epoch,
grant.probe,
grant.reservedTokens,
grant.leaseTtlMs,
grant.startInMs,
lease.expiresAtMs,
lease.startedAtMs,
lease.inflight,
lease.ttftMs,
lease.tag,
lease.retry,
lease.overdue,
grant.passedOver,
windowId,
globalWindowId,
firstTokenDueMs,
hedgeAfterMs,
promptTokens
}
end
function restoreLease(leaseId, version, source, epoch, probe, reservedTokens, leaseTtlMs, startInMs, expiresAtMs, startedAtMs, inflight, ttftMs, tag, retry, overdue, passedOver, windowId, globalWindowId, firstTokenDueMs, hedgeAfterMs, promptTokens)
if version ~= 3 then
return nil
end
local ____leaseId_4 = leaseId
local ____source_5 = source
local ____epoch_6 = epoch
local ____probe_7 = probe
local ____reservedTokens_8 = reservedTokens
local ____leaseTtlMs_9 = leaseTtlMs
local ____startInMs_10 = startInMs
local ____passedOver_11 = passedOver
local ____temp_1
if windowId == false then
____temp_1 = nil
else
____temp_1 = windowId
end
local ____temp_2
if firstTokenDueMs == false then
____temp_2 = nil
else
____temp_2 = firstTokenDueMs
end
local ____temp_3
if hedgeAfterMs == false then
____temp_3 = nil
else
____temp_3 = hedgeAfterMs
end
local ____temp_14 = {
leaseId = ____leaseId_4,
source = ____source_5,
epoch = ____epoch_6,
probe = ____probe_7,
reservedTokens = ____reservedTokens_8,
leaseTtlMs = ____leaseTtlMs_9,
startInMs = ____startInMs_10,
passedOver = ____passedOver_11,
windowId = ____temp_1,
firstTokenDueMs = ____temp_2,
hedgeAfterMs = ____temp_3
}
local ____expiresAtMs_15 = expiresAtMs
local ____startedAtMs_16 = startedAtMs
local ____inflight_17 = inflight
local ____ttftMs_18 = ttftMs
local ____tag_19 = tag
local ____retry_20 = retry
local ____overdue_21 = overdue
local ____temp_12
if globalWindowId == false then
____temp_12 = nil
else
____temp_12 = globalWindowId
end
local ____temp_13
if promptTokens == false then
____temp_13 = nil
else
____temp_13 = promptTokens
end
return {
grant = ____temp_14,
expiresAtMs = ____expiresAtMs_15,
startedAtMs = ____startedAtMs_16,
inflight = ____inflight_17,
ttftMs = ____ttftMs_18,
tag = ____tag_19,
retry = ____retry_20,
overdue = ____overdue_21,
globalWindowId = ____temp_12,
promptTokens = ____temp_13
}
end
____loaded["lease-layout"] = {flattenLease = flattenLease, restoreLease = restoreLease, LEASE_TYPES = LEASE_TYPES}
end
do
local listOf, inParts, unpackedLease, score, LeaseStore
local ____from = ____loaded["lualib_bundle"]
local __TS__Class = ____from.__TS__Class
local __TS__ArraySlice = ____from.__TS__ArraySlice
local ____from = ____loaded["keys"]
local GRANTS_KEY = ____from.GRANTS_KEY
local ____from = ____loaded["layout"]
local packedList = ____from.packedList
local ____from = ____loaded["lease-layout"]
local flattenLease = ____from.flattenLease
local restoreLease = ____from.restoreLease
function listOf(lists, name)
if lists[name] == nil then
lists[name] = {}
end
return lists[name]
end
function inParts(list, use)
if #list == 0 then
return
end
if #list <= 1000 then
use(list)
return
end
do
local from = 0
while from < #list do
use(__TS__ArraySlice(list, from, from + 1000))
from = from + 1000
end
end
end
function unpackedLease(leaseId, packed)
return restoreLease(
leaseId,
cmsgpack.unpack(packed)
)
end
function score(moment)
return string.format("%.17g", moment)
end
LeaseStore = __TS__Class()
LeaseStore.name = "LeaseStore"
function LeaseStore.prototype.____constructor(self, prefix, nowMs, sources)
self.nowMs = nowMs
self.sources = sources
self.known = {}
self.packed = {}
self.moved = {}
self.storedCounts = {}
self.counts = {}
self.movedCount = 0
self.reclaimed = {}
self.dropped = {}
self.sourceKeys = {}
self.touched = {}
self.allKey = prefix .. "l"
self.grantsKey = prefix .. GRANTS_KEY
self.now = (string.format("%.17g", nowMs))
local ____list = sources
for ____at = 1, #____list do
local source = ____list[____at]
self.sourceKeys[source] = prefix .. (("l" .. ":") .. source)
end
end
function LeaseStore.prototype.prefetch(self, leaseIds)
inParts(
leaseIds,
function(part)
local found = redis.call(
"HMGET",
self.grantsKey,
unpack(part)
)
do
local n = 0
while n < #part do
self:keep(part[n + 1], found[n + 1])
n = n + 1
end
end
end
)
end
function LeaseStore.prototype.get(self, leaseId)
local known = self.known[leaseId]
if known == nil then
self:keep(
leaseId,
redis.call("HGET", self.grantsKey, leaseId)
)
known = self.known[leaseId]
end
local ____temp_0
if known == nil or known == false then
____temp_0 = nil
else
____temp_0 = known
end
return ____temp_0
end
function LeaseStore.prototype.count(self)
return self:countOf(self.allKey)
end
function LeaseStore.prototype.inflightOf(self, source)
return self:countOf(self.sourceKeys[source])
end
function LeaseStore.prototype.add(self, lease)
self.known[lease.grant.leaseId] = lease
self.touched[lease.grant.source] = true
self:move(lease.grant.leaseId, lease)
self:changeCounts(lease, 1)
end
function LeaseStore.prototype.remove(self, leaseId)
local lease = self:get(leaseId)
if lease == nil then
return nil
end
self:drop(lease)
return lease
end
function LeaseStore.prototype.renew(self, leaseId, expiresAtMs)
local lease = self:get(leaseId)
if lease == nil then
return false
end
self:inflightOf(lease.grant.source)
lease.expiresAtMs = expiresAtMs
self:move(leaseId, lease)
return true
end
function LeaseStore.prototype.expire(self, nowMs, onExpired)
local ended = redis.call(
"ZRANGEBYSCORE",
self.allKey,
"-inf",
(string.format("%.17g", nowMs)),
"LIMIT",
0,
256
)
if #ended > 0 then
local ____list = self.sources
for ____at = 1, #____list do
local source = ____list[____at]
self:inflightOf(source)
end
end
local ____list = ended
for ____at = 1, #____list do
local leaseId = ____list[____at]
do
local __continue22
repeat
local ____self_reclaimed_1 = self.reclaimed
____self_reclaimed_1[#____self_reclaimed_1 + 1] = leaseId
local packed = redis.call("HGET", self.grantsKey, leaseId)
self.known[leaseId] = false
local ____temp_2
if type(packed) == "string" then
____temp_2 = unpackedLease(leaseId, packed)
else
____temp_2 = nil
end
local lease = ____temp_2
if lease == nil then
__continue22 = true
break
end
if self.sourceKeys[lease.grant.source] ~= nil then
self.touched[lease.grant.source] = true
end
onExpired(lease)
__continue22 = true
until true
if not __continue22 then
break
end
end
end
end
function LeaseStore.prototype.nextExpiryMs(self)
return self:nextOf(self.allKey, "")
end
function LeaseStore.prototype.nextExpiryOfMs(self, source)
return self:nextOf(self.sourceKeys[source], source)
end
function LeaseStore.prototype.save(self, ttlMs)
local allKey = self.allKey
local grantsKey = self.grantsKey
local gone = {unpack(self.reclaimed)}
if #gone > 0 then
local ____list = self.sources
for ____at = 1, #____list do
local source = ____list[____at]
redis.call("ZREMRANGEBYSCORE", self.sourceKeys[source], "-inf", self.now)
end
end
for source in pairs(self.dropped) do
local key = self.sourceKeys[source]
inParts(
self.dropped[source],
function(part) return redis.call(
"ZREM",
key,
unpack(part)
) end
)
end
local kept = {}
local keptOf = {}
local expiryMs = 0 / 0
local expiry = ""
for leaseId in pairs(self.moved) do
do
local __continue35
repeat
local lease = self.moved[leaseId]
if self.known[leaseId] == false then
gone[#gone + 1] = leaseId
__continue35 = true
break
end
if lease.expiresAtMs ~= expiryMs then
expiryMs = lease.expiresAtMs
expiry = (string.format("%.17g", expiryMs))
end
kept[#kept + 1] = expiry
kept[#kept + 1] = leaseId
local own = listOf(keptOf, lease.grant.source)
own[#own + 1] = expiry
own[#own + 1] = leaseId
__continue35 = true
until true
if not __continue35 then
break
end
end
end
for source in pairs(keptOf) do
local key = self.sourceKeys[source]
self:place(key, keptOf[source])
redis.call("PEXPIRE", key, ttlMs)
end
inParts(
gone,
function(part)
redis.call(
"ZREM",
allKey,
unpack(part)
)
redis.call(
"HDEL",
grantsKey,
unpack(part)
)
end
)
self:place(allKey, kept)
local changed = self:changedLeases()
inParts(
changed,
function(part) return redis.call(
"HSET",
grantsKey,
unpack(part)
) end
)
if #kept + #changed == 0 then
return
end
redis.call("PEXPIRE", allKey, ttlMs)
redis.call("PEXPIRE", grantsKey, ttlMs)
end
function LeaseStore.prototype.place(self, key, places)
if #places == 0 then
return
end
local growsLarge = (self.storedCounts[key] or 16) < 16 and (self.counts[key] or 0) >= 16
if growsLarge then
redis.call("ZADD", key, self.now, "makes a tree of this set, which adds leases in a fifth of the time")
end
inParts(
places,
function(part) return redis.call(
"ZADD",
key,
unpack(part)
) end
)
if growsLarge then
redis.call("ZREM", key, "makes a tree of this set, which adds leases in a fifth of the time")
end
end
function LeaseStore.prototype.changedLeases(self)
local changed = {}
for leaseId in pairs(self.known) do
do
local __continue50
repeat
local lease = self.known[leaseId]
if lease == false then
__continue50 = true
break
end
local packed = (packedList(flattenLease(lease)))
if packed == self.packed[leaseId] and self.moved[leaseId] == nil then
__continue50 = true
break
end
changed[#changed + 1] = leaseId
changed[#changed + 1] = packed
__continue50 = true
until true
if not __continue50 then
break
end
end
end
return changed
end
function LeaseStore.prototype.keep(self, leaseId, packed)
self.known[leaseId] = false
if type(packed) ~= "string" then
return
end
local lease = unpackedLease(leaseId, packed)
if lease == nil or lease.expiresAtMs <= self.nowMs then
return
end
if self.sourceKeys[lease.grant.source] == nil then
return
end
self.touched[lease.grant.source] = true
self.known[leaseId] = lease
self.packed[leaseId] = packed
end
function LeaseStore.prototype.drop(self, lease)
self.known[lease.grant.leaseId] = false
local ____listOf_result_3 = listOf(self.dropped, lease.grant.source)
____listOf_result_3[#____listOf_result_3 + 1] = lease.grant.leaseId
self:move(lease.grant.leaseId, lease)
self:changeCounts(lease, -1)
end
function LeaseStore.prototype.move(self, leaseId, lease)
if self.moved[leaseId] == nil then
self.movedCount = self.movedCount + 1
end
self.moved[leaseId] = lease
end
function LeaseStore.prototype.countOf(self, key)
local known = self.counts[key]
if known ~= nil then
return known
end
local stored = tonumber(redis.call("ZCOUNT", key, "(" .. self.now, "+inf")) or 0
self.storedCounts[key] = stored
self.counts[key] = stored
return stored
end
function LeaseStore.prototype.changeCounts(self, lease, by)
local own = self.sourceKeys[lease.grant.source]
self.counts[self.allKey] = self:countOf(self.allKey) + by
self.counts[own] = self:countOf(own) + by
end
function LeaseStore.prototype.nextOf(self, key, source)
local next = nil
local stored = redis.call(
"ZRANGEBYSCORE",
key,
"(" .. self.now,
"+inf",
"WITHSCORES",
"LIMIT",
0,
self.movedCount + 1
)
do
local at = 0
while at < #stored do
do
local __continue66
repeat
if self.moved[stored[at + 1]] ~= nil then
__continue66 = true
break
end
next = tonumber(stored[at + 1 + 1]) or nil
break
until true
if not __continue66 then
break
end
end
at = at + 2
end
end
for leaseId in pairs(self.moved) do
do
local __continue68
repeat
local lease = self.known[leaseId]
if lease == false or source ~= "" and lease.grant.source ~= source then
__continue68 = true
break
end
if next == nil or lease.expiresAtMs < next then
next = lease.expiresAtMs
end
__continue68 = true
until true
if not __continue68 then
break
end
end
end
return next
end
____loaded["lease-store"] = {LeaseStore = LeaseStore, score = score, unpackedLease = unpackedLease, inParts = inParts}
end
do
local unpacked, scopeClock
function unpacked(stored)
local values
pcall(function()
values = cmsgpack.unpack(stored)
end)
if type(values) ~= "table" then
return nil
end
local aheadMs, latestMs = unpack(values, 1, 2)
if type(aheadMs) ~= "number" or type(latestMs) ~= "number" then
return nil
end
return aheadMs >= 0 and aheadMs < 1e999 and latestMs > 0 and latestMs < 1e999 and ({aheadMs, latestMs}) or nil
end
function scopeClock(server, stored)
local ____temp_0
if stored == nil then
____temp_0 = nil
else
____temp_0 = unpacked(stored)
end
local known = ____temp_0
local aheadMs, latestMs = unpack(known or ({0, server.nowMs}), 1, 2)
local nowMs = math.max(server.nowMs + aheadMs, latestMs)
local nextAheadMs = nowMs == latestMs and math.max(0, nowMs - server.nowMs) or aheadMs
return {
nowMs = nowMs,
wallMs = server.wallMs,
isNew = known == nil,
packed = cmsgpack.pack({nextAheadMs, nowMs})
}
end
____loaded["scope-clock"] = {scopeClock = scopeClock}
end
do
local packedRecord, makeRoom, SizeBook, SizeStore
local ____from = ____loaded["lualib_bundle"]
local __TS__Class = ____from.__TS__Class
local __TS__New = ____from.__TS__New
function packedRecord(____bindingPattern0)
local outDeviation
local inDeviation
local outTokens
local inRatio
local samples
samples = ____bindingPattern0.samples
inRatio = ____bindingPattern0.inRatio
outTokens = ____bindingPattern0.outTokens
inDeviation = ____bindingPattern0.inDeviation
outDeviation = ____bindingPattern0.outDeviation
return cmsgpack.pack({
samples,
inRatio,
outTokens,
inDeviation,
outDeviation
})
end
function makeRoom(key)
if (tonumber(redis.call("HLEN", key)) or 0) < 4096 then
return
end
local any = unpack(
redis.call("HRANDFIELD", key, 1),
1,
1
)
if any ~= nil then
redis.call("HDEL", key, any)
end
end
SizeStore = __TS__Class()
SizeStore.name = "SizeStore"
function SizeStore.prototype.____constructor(self, prefix)
self.prefix = prefix
self.books = {}
end
function SizeStore.prototype.bookOf(self, model)
local book = __TS__New(SizeBook, self.prefix .. "est", model)
local ____self_books_0 = self.books
____self_books_0[#____self_books_0 + 1] = book
return book
end
function SizeStore.prototype.save(self, ttlMs)
local ____list = self.books
for ____at = 1, #____list do
local book = ____list[____at]
book:save(ttlMs)
end
end
SizeBook = __TS__Class()
SizeBook.name = "SizeBook"
function SizeBook.prototype.____constructor(self, key, model)
self.key = key
self.model = model
self.known = {}
self.packed = {}
end
function SizeBook.prototype.get(self, tag)
local known = self.known[tag]
if known == nil then
known = self:read(tag)
self.known[tag] = known
end
local ____temp_1
if known == false then
____temp_1 = nil
else
____temp_1 = known
end
return ____temp_1
end
function SizeBook.prototype.add(self, tag, record)
self.known[tag] = record
end
function SizeBook.prototype.save(self, ttlMs)
for tag in pairs(self.known) do
do
local __continue12
repeat
local record = self.known[tag]
if record == false then
__continue12 = true
break
end
local packed = packedRecord(record)
if packed == self.packed[tag] then
__continue12 = true
break
end
if self.packed[tag] == nil then
makeRoom(self.key)
end
redis.call(
"HSET",
self.key,
self:fieldOf(tag),
packed
)
redis.call("PEXPIRE", self.key, ttlMs)
__continue12 = true
until true
if not __continue12 then
break
end
end
end
end
function SizeBook.prototype.read(self, tag)
local packed = redis.call(
"HGET",
self.key,
self:fieldOf(tag)
)
if type(packed) ~= "string" then
return false
end
local samples, inRatio, outTokens, inDeviation, outDeviation = unpack(
cmsgpack.unpack(packed),
1,
5
)
if outDeviation == nil then
return false
end
self.packed[tag] = packed
return {
samples = samples,
inRatio = inRatio,
outTokens = outTokens,
inDeviation = inDeviation,
outDeviation = outDeviation
}
end
function SizeBook.prototype.fieldOf(self, tag)
return redis.sha1hex((self.model .. "\\n") .. tag)
end
____loaded["size-store"] = {SizeStore = SizeStore}
end
do
local noise, judgedValues, judgedSource, learnedValues, addLearned, troubleValues, addTrouble
local ____from = ____loaded["lualib_bundle"]
local __TS__ArrayPush = ____from.__TS__ArrayPush
function noise(v, at)
return {
vainCuts = v[at + 1],
rareCuts = v[at + 1 + 1],
fullLevel = v[at + 2 + 1],
attempts = v[at + 3 + 1],
refusals = v[at + 4 + 1],
usualGap = v[at + 5 + 1],
heardAttempts = v[at + 6 + 1],
heardAtMs = v[at + 7 + 1]
}
end
function judgedValues(source, learned, trouble)
local ____source_0 = source
local gates = ____source_0.gates
local breaker = ____source_0.breaker
local cooldown = ____source_0.cooldown
local pacer = ____source_0.pacer
local health = ____source_0.health
local ____pacer_1 = pacer
local window = ____pacer_1.window
local rate = ____pacer_1.rate
local goodput = ____pacer_1.goodput
local values = {
3,
learned,
trouble,
gates.windowId,
gates.windowRequests,
gates.windowTokens,
gates.requestTatMs,
gates.tokenTatMs,
gates.newestGrant,
breaker.state,
cooldown.coolUntilMs,
cooldown.limitedInARow,
cooldown.limitedAtMs,
cooldown.nextGrantMs,
window.wMax,
window.cutAtMs,
window.kMs,
rate.wMax,
rate.cutAtMs,
rate.kMs,
goodput.bestPerS,
goodput.bestAtMs,
pacer.attemptMs,
pacer.startWindow,
pacer.rateTatMs,
pacer.rateToleranceMs,
pacer.learnedRpm,
pacer.learnedTpm,
health.successes,
health.failures,
health.atMs,
health.ttftMs,
health.tpotMs,
health.failMs,
health.durationMs,
health.samples,
health.lastSuccessMs,
source.reclosedAtMs,
source.turns,
source.lastGrant
}
if source.lastError ~= nil then
__TS__ArrayPush(values, source.lastError.code, source.lastError.message)
end
return values
end
function judgedSource(windowId, windowRequests, windowTokens, requestTatMs, tokenTatMs, newestGrant, state, coolUntilMs, limitedInARow, limitedAtMs, nextGrantMs, windowMax, windowCutAtMs, windowKMs, rateMax, rateCutAtMs, rateKMs, bestPerS, bestAtMs, attemptMs, startWindow, rateTatMs, rateToleranceMs, learnedRpm, learnedTpm, successes, failures, atMs, ttftMs, tpotMs, failMs, durationMs, samples, lastSuccessMs, reclosedAtMs, turns, lastGrant, errorCode, errorMessage)
local ____temp_3 = {
windowId = windowId,
windowRequests = windowRequests,
windowTokens = windowTokens,
requestTatMs = requestTatMs,
tokenTatMs = tokenTatMs,
newestGrant = newestGrant
}
local ____temp_4 = {state = state}
local ____temp_5 = {coolUntilMs = coolUntilMs, limitedInARow = limitedInARow, limitedAtMs = limitedAtMs, nextGrantMs = nextGrantMs}
local ____temp_6 = {
window = {wMax = windowMax, cutAtMs = windowCutAtMs, kMs = windowKMs},
rate = {wMax = rateMax, cutAtMs = rateCutAtMs, kMs = rateKMs},
goodput = {bestPerS = bestPerS, bestAtMs = bestAtMs},
attemptMs = attemptMs,
startWindow = startWindow,
rateTatMs = rateTatMs,
rateToleranceMs = rateToleranceMs,
learnedRpm = learnedRpm,
learnedTpm = learnedTpm
}
local ____temp_7 = {}
local ____temp_8 = {}
local ____temp_9 = {
successes = successes,
failures = failures,
atMs = atMs,
ttftMs = ttftMs,
tpotMs = tpotMs,
failMs = failMs,
durationMs = durationMs,
samples = samples,
lastSuccessMs = lastSuccessMs
}
local ____reclosedAtMs_10 = reclosedAtMs
local ____turns_11 = turns
local ____lastGrant_12 = lastGrant
local ____temp_2
if errorCode == nil then
____temp_2 = nil
else
____temp_2 = {code = errorCode, message = errorMessage}
end
return {
gates = ____temp_3,
breaker = ____temp_4,
cooldown = ____temp_5,
pacer = ____temp_6,
gradient = ____temp_7,
evidence = ____temp_8,
health = ____temp_9,
reclosedAtMs = ____reclosedAtMs_10,
turns = ____turns_11,
lastGrant = ____lastGrant_12,
lastError = ____temp_2
}
end
function learnedValues(____bindingPattern0)
local evidence
local gradient
local pacer
local breaker
breaker = ____bindingPattern0.breaker
pacer = ____bindingPattern0.pacer
gradient = ____bindingPattern0.gradient
evidence = ____bindingPattern0.evidence
local ____breaker_13 = breaker
local stretches = ____breaker_13.stretches
local ____pacer_14 = pacer
local goodput = ____pacer_14.goodput
return {
breaker.epoch,
breaker.consecutiveFailures,
stretches.ids,
stretches.successes,
stretches.failures,
goodput.weight,
goodput.atMs,
goodput.firstAtMs,
goodput.granted,
goodput.refused,
pacer.firstAdmittedMs,
pacer.admitted,
pacer.bucket,
pacer.bucketCount,
pacer.earlierCount,
gradient.samples,
gradient.baseMs,
gradient.baseAtMs,
evidence.score,
evidence.atMs,
evidence.fails,
evidence.hangs
}
end
function addLearned(____bindingPattern0, v)
local evidence
local gradient
local pacer
local breaker
breaker = ____bindingPattern0.breaker
pacer = ____bindingPattern0.pacer
gradient = ____bindingPattern0.gradient
evidence = ____bindingPattern0.evidence
local ____pacer_15 = pacer
local goodput = ____pacer_15.goodput
breaker.epoch = v[1]
breaker.consecutiveFailures = v[2]
breaker.stretches = {ids = v[3], successes = v[4], failures = v[5]}
goodput.weight = v[6]
goodput.atMs = v[7]
goodput.firstAtMs = v[8]
goodput.granted = v[9]
goodput.refused = v[10]
pacer.firstAdmittedMs = v[11]
pacer.admitted = v[12]
pacer.bucket = v[13]
pacer.bucketCount = v[14]
pacer.earlierCount = v[15]
gradient.samples = v[16]
gradient.baseMs = v[17]
gradient.baseAtMs = v[18]
evidence.score = v[19]
evidence.atMs = v[20]
evidence.fails = v[21]
evidence.hangs = v[22]
end
function troubleValues(____bindingPattern0)
local pacer
local breaker
breaker = ____bindingPattern0.breaker
pacer = ____bindingPattern0.pacer
local ____pacer_16 = pacer
local windowNoise = ____pacer_16.windowNoise
local rateNoise = ____pacer_16.rateNoise
return {
breaker.openUntilMs,
breaker.trips,
breaker.closedAtMs,
breaker.dead,
breaker.deadInARow,
breaker.probeLease,
breaker.probesLeft,
windowNoise.vainCuts,
windowNoise.rareCuts,
windowNoise.fullLevel,
windowNoise.attempts,
windowNoise.refusals,
windowNoise.usualGap,
windowNoise.heardAttempts,
windowNoise.heardAtMs,
rateNoise.vainCuts,
rateNoise.rareCuts,
rateNoise.fullLevel,
rateNoise.attempts,
rateNoise.refusals,
rateNoise.usualGap,
rateNoise.heardAttempts,
rateNoise.heardAtMs
}
end
function addTrouble(____bindingPattern0, v)
local pacer
local breaker
breaker = ____bindingPattern0.breaker
pacer = ____bindingPattern0.pacer
breaker.openUntilMs = v[1]
breaker.trips = v[2]
breaker.closedAtMs = v[3]
breaker.dead = v[4]
breaker.deadInARow = v[5]
breaker.probeLease = v[6]
breaker.probesLeft = v[7]
pacer.windowNoise = noise(v, 7)
pacer.rateNoise = noise(v, 15)
end
____loaded["source-layout"] = {judgedValues = judgedValues, learnedValues = learnedValues, troubleValues = troubleValues, addLearned = addLearned, addTrouble = addTrouble, judgedSource = judgedSource}
end
do
local askFrom, readLater, setLater, unpackFor, laterParts, packedSource
local ____from = ____loaded["layout"]
local packedList = ____from.packedList
local ____from = ____loaded["source-layout"]
local addLearned = ____from.addLearned
local addTrouble = ____from.addTrouble
local judgedValues = ____from.judgedValues
local learnedValues = ____from.learnedValues
local troubleValues = ____from.troubleValues
function askFrom(____bindingPattern0, parts)
local evidence
local gradient
local pacer
local breaker
breaker = ____bindingPattern0.breaker
pacer = ____bindingPattern0.pacer
gradient = ____bindingPattern0.gradient
evidence = ____bindingPattern0.evidence
setmetatable(breaker, parts)
setmetatable(pacer, parts)
setmetatable(pacer.goodput, parts)
setmetatable(gradient, parts)
setmetatable(evidence, parts)
end
function readLater(record, field)
unpackFor(record, field)
return record[field]
end
function setLater(record, field, value)
unpackFor(record, field)
record[field] = value
end
function unpackFor(record, field)
local parts = getmetatable(record)
local source = parts.source
local learned = parts.learned
local trouble = parts.trouble
askFrom(source, nil)
if learned ~= nil then
addLearned(
source,
cmsgpack.unpack(learned)
)
parts.learned = nil
if record[field] ~= nil then
if trouble ~= nil then
askFrom(source, parts)
end
return
end
end
if trouble == nil then
return
end
addTrouble(
source,
cmsgpack.unpack(trouble)
)
parts.trouble = nil
end
function laterParts(source, learned, trouble)
local parts = {
__index = readLater,
__newindex = setLater,
source = source,
learned = learned,
trouble = trouble
}
askFrom(source, parts)
return parts
end
function packedSource(source, parts)
local learned = parts and parts.learned or cmsgpack.pack(learnedValues(source))
local trouble = parts and parts.trouble or cmsgpack.pack(troubleValues(source))
return packedList(judgedValues(source, learned, trouble))
end
____loaded["later-parts"] = {laterParts = laterParts, packedSource = packedSource}
end
do
local packedWorker, loadWorkers, saveWorkers
local ____from = ____loaded["lualib_bundle"]
local Map = ____from.Map
local __TS__New = ____from.__TS__New
local __TS__Iterator = ____from.__TS__Iterator
function packedWorker(____bindingPattern0)
local lastVisitMs
local priority
local waiting
local virtualTime
virtualTime = ____bindingPattern0.virtualTime
waiting = ____bindingPattern0.waiting
priority = ____bindingPattern0.priority
lastVisitMs = ____bindingPattern0.lastVisitMs
return cmsgpack.pack({virtualTime, waiting, priority, lastVisitMs})
end
function loadWorkers(prefix, packed)
local book = __TS__New(Map)
local stored = redis.call("HGETALL", prefix .. "w")
do
local at = 0
while at < #stored do
local name = stored[at + 1]
local text = stored[at + 1 + 1]
local virtualTime, waiting, priority, lastVisitMs = unpack(
cmsgpack.unpack(text),
1,
4
)
book:set(name, {virtualTime = virtualTime, waiting = waiting, priority = priority, lastVisitMs = lastVisitMs})
packed[name] = text
at = at + 2
end
end
return book
end
function saveWorkers(prefix, book, packed, ttlMs)
local key = prefix .. "w"
local hasChanged = false
for ____, ____value in __TS__Iterator(book) do
local name = ____value[1]
local worker = ____value[2]
do
local __continue6
repeat
local text = packedWorker(worker)
if text == packed[name] then
__continue6 = true
break
end
redis.call("HSET", key, name, text)
hasChanged = true
__continue6 = true
until true
if not __continue6 then
break
end
end
end
for name in pairs(packed) do
if not book:has(name) then
redis.call("HDEL", key, name)
end
end
if hasChanged then
redis.call("PEXPIRE", key, ttlMs)
end
end
____loaded["worker-store"] = {loadWorkers = loadWorkers, saveWorkers = saveWorkers}
end
do
local readState, knownSource, readSource, unknownSource, endLostProbe, unpackedValues, changedState, SCOPE_FIELDS, loadScope, loadProgress
local ____from = ____loaded["lualib_bundle"]
local __TS__ArrayMap = ____from.__TS__ArrayMap
local __TS__ArrayConcat = ____from.__TS__ArrayConcat
local __TS__New = ____from.__TS__New
local __TS__Iterator = ____from.__TS__Iterator
local __TS__SparseArrayNew = ____from.__TS__SparseArrayNew
local __TS__SparseArrayPush = ____from.__TS__SparseArrayPush
local __TS__SparseArraySpread = ____from.__TS__SparseArraySpread
local __TS__ArrayPush = ____from.__TS__ArrayPush
local ____from = ____loaded["domain.scope-state"]
local newScopeState = ____from.newScopeState
local newSourceRecord = ____from.newSourceRecord
local ____from = ____loaded["common-limits"]
local commonLimits = ____from.commonLimits
local ____from = ____loaded["keys"]
local STATE_KEY = ____from.STATE_KEY
local ____from = ____loaded["later-parts"]
local laterParts = ____from.laterParts
local packedSource = ____from.packedSource
local ____from = ____loaded["layout"]
local flattenScope = ____from.flattenScope
local restoreScope = ____from.restoreScope
local ____from = ____loaded["lease-store"]
local inParts = ____from.inParts
local LeaseStore = ____from.LeaseStore
local ____from = ____loaded["scope-clock"]
local scopeClock = ____from.scopeClock
local ____from = ____loaded["size-store"]
local SizeStore = ____from.SizeStore
local ____from = ____loaded["source-layout"]
local judgedSource = ____from.judgedSource
local ____from = ____loaded["worker-store"]
local loadWorkers = ____from.loadWorkers
local saveWorkers = ____from.saveWorkers
function readState(prefix, fields)
local stored = {}
inParts(
fields,
function(part)
local values = redis.call(
"HMGET",
prefix .. STATE_KEY,
unpack(part)
)
do
local n = 0
while n < #part do
local value = values[n + 1]
if type(value) == "string" then
stored[part[n + 1]] = value
end
n = n + 1
end
end
end
)
return stored
end
function knownSource(parts, name, packed)
return readSource(
parts,
name,
pcall(cmsgpack.unpack, packed)
)
end
function readSource(parts, name, isReadable, version, learned, trouble, ...)
if not isReadable or version ~= 3 then
return nil
end
local source = judgedSource(...)
parts[name] = laterParts(source, learned, trouble)
return source
end
function unknownSource(nowMs)
local record = newSourceRecord(nowMs)
record.breaker.epoch = math.floor(nowMs)
return record
end
function endLostProbe(____bindingPattern0, leases)
local breaker
breaker = ____bindingPattern0.breaker
if breaker.state == "closed" or breaker.probeLease == "" then
return
end
if leases:get(breaker.probeLease) == nil then
breaker.probeLease = ""
end
end
function unpackedValues(packed)
local values = {}
pcall(function()
values = cmsgpack.unpack(packed)
end)
return type(values) == "table" and values[1] == 3 and values or nil
end
function changedState(state, touched, parts, stored)
local changed = {}
for name in pairs(touched) do
local packed = packedSource(
state.sources:get(name),
parts[name]
)
if packed ~= stored[name] then
__TS__ArrayPush(changed, name, packed)
end
end
local scope = cmsgpack.pack(flattenScope(state))
if scope ~= stored["*"] then
__TS__ArrayPush(changed, "*", scope)
end
return changed
end
function loadScope(prefix, own, server)
local names = __TS__ArrayMap(
own.sources,
function(____, source) return source.name end
)
local stored = readState(
prefix,
__TS__ArrayConcat(SCOPE_FIELDS, names)
)
local clock = scopeClock(server, stored["@"])
local nowMs = clock.nowMs
local ____commonLimits_result_0 = commonLimits(own, clock.isNew and ({}) or stored, nowMs)
local setup = ____commonLimits_result_0.setup
local changed = ____commonLimits_result_0.changed
local leases = __TS__New(LeaseStore, prefix, nowMs, names)
local sizes = __TS__New(SizeStore, prefix)
local parts = {}
local function recordOf(name)
local ____clock_isNew_1
if clock.isNew then
____clock_isNew_1 = nil
else
____clock_isNew_1 = stored[name]
end
local packed = ____clock_isNew_1
local ____temp_2
if packed == nil then
____temp_2 = nil
else
____temp_2 = knownSource(parts, name, packed)
end
local record = ____temp_2 or unknownSource(nowMs)
endLostProbe(record, leases)
return record
end
local state = newScopeState(
setup,
nowMs,
leases,
function(model) return sizes:bookOf(model) end,
recordOf
)
local ____clock_isNew_3
if clock.isNew then
____clock_isNew_3 = nil
else
____clock_isNew_3 = stored["*"]
end
local scope = ____clock_isNew_3
local ____temp_4
if scope == nil then
____temp_4 = nil
else
____temp_4 = unpackedValues(scope)
end
local values = ____temp_4
if values ~= nil then
restoreScope(state, values)
end
local workers = {}
if setup.scheduling.fairness then
for ____, ____value in __TS__Iterator(loadWorkers(prefix, workers)) do
local name = ____value[1]
local worker = ____value[2]
state.workers:set(name, worker)
end
end
return {
state = state,
leases = leases,
clock = clock,
save = function(self, ttlMs)
local always = {
"@",
clock.packed,
unpack(changed)
}
local key = prefix .. STATE_KEY
local ____redis_call_6 = redis.call
local ____array_5 = __TS__SparseArrayNew(
"HSET",
key,
unpack(always)
)
__TS__SparseArrayPush(
____array_5,
unpack(changedState(state, leases.touched, parts, stored))
)
____redis_call_6(__TS__SparseArraySpread(____array_5))
redis.call("PEXPIRE", key, ttlMs)
leases:save(ttlMs)
sizes:save(ttlMs)
if setup.scheduling.fairness then
saveWorkers(prefix, state.workers, workers, ttlMs)
end
end
}
end
SCOPE_FIELDS = {"@", "~~", "~", "*"}
function loadProgress(prefix, server)
local stored = readState(prefix, {"@", "*"})
local ____scopeClock_result_7 = scopeClock(server, stored["@"])
local nowMs = ____scopeClock_result_7.nowMs
local isNew = ____scopeClock_result_7.isNew
local ____temp_8
if isNew or stored["*"] == nil then
____temp_8 = nil
else
____temp_8 = unpackedValues(stored["*"])
end
local values = ____temp_8
return {
lastProgressMs = values == nil and -1e999 or (values[10]),
nowMs = nowMs
}
end
____loaded["scope-store"] = {loadProgress = loadProgress, loadScope = loadScope}
end
do
local receivedBatch
local NONE = {}
function receivedBatch(sent)
local ____sent_0 = sent
local candidates = ____sent_0.candidates
local ____list = sent.wants
for ____at = 1, #____list do
local want = ____list[____at]
want.candidates = candidates[want.candidates + 1]
if want.failedHere == nil then
want.failedHere = NONE
end
if want.limitedHere == nil then
want.limitedHere = NONE
end
end
return sent
end
____loaded["sent-batch"] = {receivedBatch = receivedBatch}
end
do
local answer
local ____from = ____loaded["lualib_bundle"]
local __TS__StringStartsWith = ____from.__TS__StringStartsWith
local __TS__ObjectAssign = ____from.__TS__ObjectAssign
local function describeScope(...) return ____need("domain.description").describeScope(...) end
local function describeSource(...) return ____need("domain.description").describeSource(...) end
local ____from = ____loaded["domain.settlement"]
local reclaimExpired = ____from.reclaimExpired
local ____from = ____loaded["domain.tick-rules"]
local runTick = ____from.runTick
local function repair(...) return ____need("repair").repair(...) end
local ____from = ____loaded["scope-store"]
local loadProgress = ____from.loadProgress
local loadScope = ____from.loadScope
local ____from = ____loaded["sent-batch"]
local receivedBatch = ____from.receivedBatch
local verb, prefix, configuration, input, moment = unpack(ARGV, 1, 5)
local function storeClock()
local ____prefix_startsWith_result_0
if __TS__StringStartsWith(prefix, "pgw-test:") then
____prefix_startsWith_result_0 = tonumber(moment)
else
____prefix_startsWith_result_0 = nil
end
local given = ____prefix_startsWith_result_0
if given ~= nil then
return {nowMs = given, wallMs = given}
end
local seconds, microseconds = unpack(
redis.call("TIME"),
1,
2
)
local nowMs = tonumber(seconds) * 1000 + tonumber(microseconds) / 1000
return {nowMs = nowMs, wallMs = nowMs}
end
local function publish(events, worker, fairness)
local ____list = events
for ____at = 1, #____list do
local event = ____list[____at]
do
local __continue5
repeat
local isForNobody = event.type == "capacity" and event.source ~= "*" and event.worker == nil and fairness
if isForNobody or event.worker == worker then
__continue5 = true
break
end
local channel = event.worker == nil and "ev" or "wake:" .. event.worker
redis.call(
"PUBLISH",
prefix .. channel,
cjson.encode({from = worker, event = event})
)
__continue5 = true
until true
if not __continue5 then
break
end
end
end
end
local function insistOn(____bindingPattern0)
local renew
local verdicts
local settles
settles = ____bindingPattern0.settles
verdicts = ____bindingPattern0.verdicts
renew = ____bindingPattern0.renew
if #settles + #verdicts + #renew > 0 then
redis.call("ZREM", prefix .. "l", "")
end
end
local function leaseIdsOf(____bindingPattern0)
local wants
local renew
local verdicts
local settles
settles = ____bindingPattern0.settles
verdicts = ____bindingPattern0.verdicts
renew = ____bindingPattern0.renew
wants = ____bindingPattern0.wants
local leaseIds = {}
local ____list = settles
for ____at = 1, #____list do
local ____value = ____list[____at]
local leaseId = ____value.leaseId
leaseIds[#leaseIds + 1] = leaseId
end
local ____list = verdicts
for ____at = 1, #____list do
local ____value = ____list[____at]
local leaseId = ____value.leaseId
leaseIds[#leaseIds + 1] = leaseId
end
local ____list = renew
for ____at = 1, #____list do
local leaseId = ____list[____at]
leaseIds[#leaseIds + 1] = leaseId
end
local ____list = wants
for ____at = 1, #____list do
local ____value = ____list[____at]
local leaseId = ____value.leaseId
leaseIds[#leaseIds + 1] = leaseId
end
return leaseIds
end
local function begin(setup, server)
local loaded = loadScope(prefix, setup, server)
if not loaded.clock.isNew or redis.call("EXISTS", prefix .. "l") == 0 then
return loaded
end
repair(prefix, setup, server, 86400000)
return loadScope(prefix, setup, server)
end
local function tick(setup, server)
local batch = receivedBatch(cjson.decode(input))
local ____begin_result_1 = begin(setup, server)
local state = ____begin_result_1.state
local leases = ____begin_result_1.leases
local clock = ____begin_result_1.clock
local save = ____begin_result_1.save
leases:prefetch(leaseIdsOf(batch))
local ____runTick_result_2 = runTick(state, batch, clock)
local reply = ____runTick_result_2.reply
local events = ____runTick_result_2.events
local told = cjson.encode({reply = reply, events = events})
insistOn(batch)
save(nil, 86400000)
publish(events, batch.worker, setup.scheduling.fairness)
return told
end
local function snapshot(setup, server)
local ____loadScope_result_3 = loadScope(prefix, setup, server)
local state = ____loadScope_result_3.state
local clock = ____loadScope_result_3.clock
reclaimExpired(state, clock)
local sources = {}
local ____list = state.sourceList
for ____at = 1, #____list do
local source = ____list[____at]
sources[#sources + 1] = describeSource(state, source, clock)
end
return cjson.encode(__TS__ObjectAssign(
{},
describeScope(state),
{sources = sources}
))
end
local function progressAge(server)
local ____loadProgress_result_4 = loadProgress(prefix, server)
local lastProgressMs = ____loadProgress_result_4.lastProgressMs
local nowMs = ____loadProgress_result_4.nowMs
return lastProgressMs == -1e999 and "" or tostring(nowMs - lastProgressMs)
end
local function repaired(setup, server)
return tostring(repair(prefix, setup, server, 86400000))
end
local verbs = {tick = tick, snapshot = snapshot, repair = repaired}
local function answerNow()
local server = storeClock()
return verb == "progress" and progressAge(server) or verbs[verb](
cjson.decode(configuration),
server
)
end
answer = answerNow()
return answer
end
`;
