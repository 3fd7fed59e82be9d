// Made by scripts/build-lua.mjs from src/backends/redis/script and src/domain; not to be edited.

export const TICK_SCRIPT = `
local ____modules = {}
local ____moduleCache = {}
local ____originalRequire = nil
local function require(file, ...)
if ____moduleCache[file] then
return ____moduleCache[file].value
end
if ____modules[file] then
local module = ____modules[file]
local value = nil
if (select("#", ...) > 0) then value = module(...) else value = module(file) end
____moduleCache[file] = { value = value }
return value
else
if ____originalRequire then
return ____originalRequire(file)
else
error("module '" .. file .. "' not found")
end
end
end
____modules = {
["lualib_bundle"] = function(...) 
local function __TS__StringStartsWith(self, searchString, position)
if position == nil or position < 0 then
position = 0
end
return string.sub(self, position + 1, #searchString + position) == searchString
end

local __TS__Symbol, Symbol
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

local __TS__Iterator
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

local function __TS__NumberIsFinite(value)
return type(value) == "number" and value == value and value ~= math.huge and value ~= -math.huge
end

local function __TS__MathTrunc(val)
if not __TS__NumberIsFinite(val) or val == 0 then
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

local Map
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
for ____, kvp in ipairs(array) do
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
if length < 0 or length ~= length or length == math.huge or math.floor(length) ~= length then
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

local function __TS__ArrayIsArray(value)
return type(value) == "table" and (value[1] ~= nil or next(value) == nil)
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
if __TS__ArrayIsArray(item) then
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

local function __TS__NumberIsNaN(value)
return value ~= value
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

return {
__TS__StringStartsWith = __TS__StringStartsWith,
__TS__Iterator = __TS__Iterator,
__TS__ObjectAssign = __TS__ObjectAssign,
__TS__Spread = __TS__Spread,
__TS__ArrayMap = __TS__ArrayMap,
__TS__NumberIsFinite = __TS__NumberIsFinite,
__TS__MathTrunc = __TS__MathTrunc,
__TS__ArraySort = __TS__ArraySort,
__TS__ArrayIndexOf = __TS__ArrayIndexOf,
__TS__ArrayFindIndex = __TS__ArrayFindIndex,
__TS__ArrayIncludes = __TS__ArrayIncludes,
Map = Map,
__TS__New = __TS__New,
__TS__StringIncludes = __TS__StringIncludes,
__TS__ArraySetLength = __TS__ArraySetLength,
__TS__ArraySplice = __TS__ArraySplice,
__TS__ArrayFilter = __TS__ArrayFilter,
__TS__ArraySome = __TS__ArraySome,
__TS__ArrayFind = __TS__ArrayFind,
__TS__ArrayPush = __TS__ArrayPush,
__TS__ArrayConcat = __TS__ArrayConcat,
__TS__ArrayEvery = __TS__ArrayEvery,
__TS__NumberIsNaN = __TS__NumberIsNaN,
__TS__Class = __TS__Class,
__TS__ArraySlice = __TS__ArraySlice
}
end,
["main"] = function(...) 
local ____lualib = require("lualib_bundle")
local __TS__StringStartsWith = ____lualib.__TS__StringStartsWith
local __TS__Iterator = ____lualib.__TS__Iterator
local __TS__ObjectAssign = ____lualib.__TS__ObjectAssign
local ____exports = {}
local function describeScope(...) return require("domain.description").describeScope(...) end
local function describeSource(...) return require("domain.description").describeSource(...) end
local ____settlement_2Ejs = require("domain.settlement")
local reclaimExpired = ____settlement_2Ejs.reclaimExpired
local ____tick_2Drules_2Ejs = require("domain.tick-rules")
local runTick = ____tick_2Drules_2Ejs.runTick
local ____keys_2Ejs = require("keys")
local LEASES_KEY = ____keys_2Ejs.LEASES_KEY
local function repair(...) return require("repair").repair(...) end
local ____scope_2Dstore_2Ejs = require("scope-store")
local loadProgress = ____scope_2Dstore_2Ejs.loadProgress
local loadScope = ____scope_2Dstore_2Ejs.loadScope
local ____sent_2Dbatch_2Ejs = require("sent-batch")
local receivedBatch = ____sent_2Dbatch_2Ejs.receivedBatch
local verb, prefix, configuration, input, moment = unpack(ARGV, 1, 5)
local KEYS_OUTLIVE_MS = 86400000
local TEST_PREFIX = "pgw-test:"
local function storeClock()
local ____prefix_startsWith_result_0
if __TS__StringStartsWith(prefix, TEST_PREFIX) then
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
for ____, event in ipairs(events) do
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
redis.call("ZREM", prefix .. LEASES_KEY, "")
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
for ____, ____value in ipairs(settles) do
local leaseId = ____value.leaseId
leaseIds[#leaseIds + 1] = leaseId
end
for ____, ____value in ipairs(verdicts) do
local leaseId = ____value.leaseId
leaseIds[#leaseIds + 1] = leaseId
end
for ____, leaseId in ipairs(renew) do
leaseIds[#leaseIds + 1] = leaseId
end
for ____, ____value in ipairs(wants) do
local leaseId = ____value.leaseId
leaseIds[#leaseIds + 1] = leaseId
end
return leaseIds
end
local function begin(setup, server)
local loaded = loadScope(prefix, setup, server)
if not loaded.clock.isNew or redis.call("EXISTS", prefix .. LEASES_KEY) == 0 then
return loaded
end
repair(prefix, setup, server, KEYS_OUTLIVE_MS)
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
save(nil, KEYS_OUTLIVE_MS)
publish(events, batch.worker, setup.scheduling.fairness)
return told
end
local function snapshot(setup, server)
local ____loadScope_result_3 = loadScope(prefix, setup, server)
local state = ____loadScope_result_3.state
local clock = ____loadScope_result_3.clock
reclaimExpired(state, clock)
local sources = {}
for ____, ____value in __TS__Iterator(state.sources) do
local source = ____value[2]
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
return lastProgressMs == -math.huge and "" or tostring(nowMs - lastProgressMs)
end
local function repaired(setup, server)
return tostring(repair(prefix, setup, server, KEYS_OUTLIVE_MS))
end
local verbs = {tick = tick, snapshot = snapshot, repair = repaired}
local function answerNow()
local server = storeClock()
return verb == "progress" and progressAge(server) or verbs[verb](
cjson.decode(configuration),
server
)
end
____exports.answer = answerNow()
return ____exports
end,
["domain.description"] = function(...) 
local ____lualib = require("lualib_bundle")
local __TS__Spread = ____lualib.__TS__Spread
local __TS__ArrayMap = ____lualib.__TS__ArrayMap
local __TS__NumberIsFinite = ____lualib.__TS__NumberIsFinite
local ____exports = {}
local describeAdaptive, knownOrNull, finiteOrNull
local ____cooldown_2Ejs = require("domain.cooldown")
local cooldownWaitMs = ____cooldown_2Ejs.cooldownWaitMs
local ____gate_2Ejs = require("domain.gates.gate")
local requestsBooked = ____gate_2Ejs.requestsBooked
local tokensBooked = ____gate_2Ejs.tokensBooked
local ____evidence_2Ejs = require("domain.scheduling.evidence")
local evidenceNow = ____evidence_2Ejs.evidenceNow
local TRIPS_AT = ____evidence_2Ejs.TRIPS_AT
local ____first_2Dtoken_2Ejs = require("domain.scheduling.first-token")
local firstTokenDueMs = ____first_2Dtoken_2Ejs.firstTokenDueMs
local ____health_2Ejs = require("domain.scheduling.health")
local successShare = ____health_2Ejs.successShare
local ____in_2Dforce_2Ejs = require("domain.scheduling.in-force")
local isRamping = ____in_2Dforce_2Ejs.isRamping
local rateInForce = ____in_2Dforce_2Ejs.rateInForce
local windowInForce = ____in_2Dforce_2Ejs.windowInForce
local ____pool_2Ejs = require("domain.scheduling.pool")
local poolOf = ____pool_2Ejs.poolOf
local ____standing_2Ejs = require("domain.standing")
local usualRefusal = ____standing_2Ejs.usualRefusal
function describeAdaptive(state, source, nowMs)
local ____source_2 = source
local pacer = ____source_2.pacer
local evidence = ____source_2.evidence
local health = ____source_2.health
local config = ____source_2.config
local cutAtMs = math.max(pacer.window.wMax > 0 and pacer.window.cutAtMs or -math.huge, pacer.rate.wMax > 0 and pacer.rate.cutAtMs or -math.huge)
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
if cutAtMs == -math.huge then
____temp_3 = nil
else
____temp_3 = nowMs - cutAtMs
end
local ____evidenceNow_result_9 = evidenceNow(evidence, nowMs)
local ____TRIPS_AT_10 = TRIPS_AT
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
ramping = isRamping(source, nowMs)
}
end
function ____exports.describeScope(state)
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
function ____exports.describeSource(state, source, clock)
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
finiteOrNull = function(value) return __TS__NumberIsFinite(value) and value or nil end
return ____exports
end,
["domain.cooldown"] = function(...) 
local ____exports = {}
local ownCooldownMs, BASE_MS, MAX_MS, JITTER
local ____random_2Ejs = require("domain.random")
local jittered = ____random_2Ejs.jittered
function ownCooldownMs(limitedInARow, random)
local lengthMs = BASE_MS
do
local n = 1
while n < limitedInARow and lengthMs < MAX_MS do
lengthMs = lengthMs * 2
n = n + 1
end
end
return jittered(
math.min(MAX_MS, lengthMs),
JITTER,
random
)
end
BASE_MS = 400
MAX_MS = 15000
JITTER = 0.25
local RETRY_AFTER_MAX_MS = 10 * 60000
local REOPEN_GAP_MS = 100
function ____exports.noCooldown()
return {coolUntilMs = 0, limitedInARow = 0, limitedAtMs = 0, nextGrantMs = 0}
end
function ____exports.isOfLastWave(c, sentAtMs)
return c.limitedInARow > 0 and sentAtMs <= c.limitedAtMs
end
function ____exports.coolDown(c, nowMs, sentAtMs, retryAfterMs, random)
if ____exports.isOfLastWave(c, sentAtMs) then
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
nowMs + math.min(RETRY_AFTER_MAX_MS, lengthMs)
)
end
function ____exports.endCooldown(c)
c.limitedInARow = 0
c.nextGrantMs = 0
end
function ____exports.cooldownWaitMs(c, nowMs)
return math.max(
0,
math.max(c.coolUntilMs, c.nextGrantMs) - nowMs
)
end
function ____exports.noteGrant(c, nowMs)
if c.limitedInARow > 0 then
c.nextGrantMs = nowMs + REOPEN_GAP_MS
end
end
return ____exports
end,
["domain.random"] = function(...) 
local ____lualib = require("lualib_bundle")
local __TS__MathTrunc = ____lualib.__TS__MathTrunc
local ____exports = {}
local MODULUS = 2147483647
local MULTIPLIER = 16807
function ____exports.seededRandom(seed)
return {seed = seed, state = 0}
end
function ____exports.draw(random)
if random.state == 0 then
random.state = math.abs(__TS__MathTrunc(random.seed)) % (MODULUS - 1) + 1
end
random.state = random.state * MULTIPLIER % MODULUS
return random.state / MODULUS
end
function ____exports.jittered(value, share, random)
return value * (1 - share + 2 * share * ____exports.draw(random))
end
return ____exports
end,
["domain.gates.gate"] = function(...) 
local ____exports = {}
local ____smooth_2Ejs = require("domain.gates.smooth")
local requestRate = ____smooth_2Ejs.requestRate
local smoothBooked = ____smooth_2Ejs.smoothBooked
local smoothCorrect = ____smooth_2Ejs.smoothCorrect
local smoothTake = ____smooth_2Ejs.smoothTake
local smoothWaitMs = ____smooth_2Ejs.smoothWaitMs
local tokenRate = ____smooth_2Ejs.tokenRate
local ____window_2Ejs = require("domain.gates.window")
local rollWindow = ____window_2Ejs.rollWindow
local windowIdOf = ____window_2Ejs.windowIdOf
local windowWaitMs = ____window_2Ejs.windowWaitMs
function ____exports.gateRules(limits)
return {
limits = limits,
requests = requestRate(limits),
tokens = tokenRate(limits)
}
end
function ____exports.emptyGateRecord()
return {
windowId = -1,
windowRequests = 0,
windowTokens = 0,
requestTatMs = 0,
tokenTatMs = 0,
newestGrant = ""
}
end
function ____exports.requestWaitMs(rules, record, clock)
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
function ____exports.tokenWaitMs(rules, record, clock, tokens)
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
function ____exports.takeFromGates(rules, record, clock, tokens, leaseId)
record.newestGrant = leaseId
if rules.limits.limitRule == "window" then
local id = windowIdOf(clock.wallMs, record)
rollWindow(record, id)
record.windowRequests = record.windowRequests + 1
record.windowTokens = record.windowTokens + tokens
return id
end
if rules.requests ~= nil then
record.requestTatMs = smoothTake(rules.requests, record.requestTatMs, clock.nowMs, 1)
end
if rules.tokens ~= nil then
record.tokenTatMs = smoothTake(rules.tokens, record.tokenTatMs, clock.nowMs, tokens)
end
return nil
end
function ____exports.settleGates(rules, record, clock, s)
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
function ____exports.requestsBooked(rules, record, clock)
if rules.limits.limitRule == "window" then
return record.windowId == windowIdOf(clock.wallMs, record) and record.windowRequests or 0
end
return rules.requests == nil and 0 or smoothBooked(rules.requests, record.requestTatMs, clock.nowMs)
end
function ____exports.tokensBooked(rules, record, clock)
if rules.limits.limitRule == "window" then
return record.windowId == windowIdOf(clock.wallMs, record) and record.windowTokens or 0
end
return rules.tokens == nil and 0 or smoothBooked(rules.tokens, record.tokenTatMs, clock.nowMs)
end
return ____exports
end,
["domain.gates.smooth"] = function(...) 
local ____exports = {}
local ceilTo
function ceilTo(value, perMs)
return math.ceil(value * perMs) / perMs
end
local STRICT_WINDOW_MS = 60500
local MINUTE_MS = 60000
function ____exports.requestBurst(limits)
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
function ____exports.tokenBurst(limits)
return limits.strict and limits.tpm / 60 or limits.burstTokensS * limits.tpm / 60
end
function ____exports.requestRate(limits)
if limits.rpm == 0 then
return nil
end
local burst = ____exports.requestBurst(limits)
local windowMs = limits.strict and STRICT_WINDOW_MS or MINUTE_MS
local units = limits.strict and limits.rpm - burst + 1 or limits.rpm
local intervalMs = ceilTo(windowMs / units, 1000)
return {intervalMs = intervalMs, toleranceMs = (burst - 1) * intervalMs}
end
function ____exports.tokenRate(limits)
if limits.tpm == 0 then
return nil
end
local burst = ____exports.tokenBurst(limits)
local windowMs = limits.strict and STRICT_WINDOW_MS or MINUTE_MS
local units = limits.strict and limits.tpm - burst or limits.tpm
local intervalMs = ceilTo(windowMs / units, 1000000)
return {intervalMs = intervalMs, toleranceMs = burst * intervalMs}
end
local NO_WAIT_MS = 0.001
function ____exports.smoothWaitMs(rate, tatMs, nowMs)
local waitMs = tatMs - rate.toleranceMs - nowMs
return waitMs < NO_WAIT_MS and 0 or waitMs
end
function ____exports.smoothTake(rate, tatMs, nowMs, cost)
return math.max(nowMs, tatMs) + cost * rate.intervalMs
end
function ____exports.smoothCorrect(rate, tatMs, nowMs, units)
if units > 0 then
return math.max(nowMs, tatMs) + units * rate.intervalMs
end
return math.max(tatMs + units * rate.intervalMs, nowMs - rate.toleranceMs)
end
function ____exports.smoothBooked(rate, tatMs, nowMs)
return math.max(
0,
math.floor((tatMs - nowMs) / rate.intervalMs + 0.5)
)
end
return ____exports
end,
["domain.gates.window"] = function(...) 
local ____exports = {}
local MINUTE_MS = 60000
function ____exports.windowIdOf(wallMs, counts)
local id = math.floor(wallMs / MINUTE_MS)
return id == counts.windowId - 1 and counts.windowId or id
end
function ____exports.windowWaitMs(wallMs, windowId)
return math.max(1, (windowId + 1) * MINUTE_MS - wallMs)
end
function ____exports.rollWindow(counts, windowId)
if counts.windowId == windowId then
return
end
counts.windowId = windowId
counts.windowRequests = 0
counts.windowTokens = 0
end
return ____exports
end,
["domain.scheduling.evidence"] = function(...) 
local ____exports = {}
local weightOf, GOOD_SHARE, BROKEN_SHARE, MOST_GOOD_SHARE, POOL_MARGIN, HALF_LIFE_MS, SLOW_SHARE, FAILURE_WEIGHT, SUCCESS_WEIGHT
local ____decay_2Ejs = require("domain.scheduling.decay")
local decayFactor = ____decay_2Ejs.decayFactor
function ____exports.evidenceNow(e, nowMs)
return e.score == 0 and 0 or e.score * decayFactor(nowMs - e.atMs, HALF_LIFE_MS)
end
function weightOf(kind, poolFailShare)
local goodShare = math.min(MOST_GOOD_SHARE, POOL_MARGIN * poolFailShare)
local isUsual = goodShare <= GOOD_SHARE
local failure = isUsual and FAILURE_WEIGHT or math.log(BROKEN_SHARE / goodShare)
local success = isUsual and SUCCESS_WEIGHT or math.log((1 - BROKEN_SHARE) / (1 - goodShare))
repeat
local ____switch11 = kind
local ____cond11 = ____switch11 == "failure" or ____switch11 == "hang"
if ____cond11 then
return failure
end
____cond11 = ____cond11 or ____switch11 == "slow_success"
if ____cond11 then
return SLOW_SHARE * failure
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
GOOD_SHARE = 0.05
BROKEN_SHARE = 0.5
MOST_GOOD_SHARE = 0.4
POOL_MARGIN = 1.5
____exports.TRIPS_AT = 9.2
local PROBATION = ____exports.TRIPS_AT / 2
HALF_LIFE_MS = 60000
SLOW_SHARE = 0.5
function ____exports.noEvidence()
return {score = 0, atMs = 0, fails = 0, hangs = 0}
end
function ____exports.addEvidence(e, kind, poolFailShare, nowMs)
local score = ____exports.evidenceNow(e, nowMs) + weightOf(kind, poolFailShare)
e.atMs = nowMs
e.score = math.max(0, score)
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
return e.score >= ____exports.TRIPS_AT
end
function ____exports.isMostlyHanging(e)
return e.hangs * 2 > e.fails
end
function ____exports.restartEvidence(e, onProbation, nowMs)
e.score = onProbation and PROBATION or 0
e.atMs = nowMs
e.fails = 0
e.hangs = 0
end
FAILURE_WEIGHT = math.log(BROKEN_SHARE / GOOD_SHARE)
SUCCESS_WEIGHT = math.log((1 - BROKEN_SHARE) / (1 - GOOD_SHARE))
return ____exports
end,
["domain.scheduling.decay"] = function(...) 
local ____exports = {}
local STEPS = 64
local STEP_FACTOR = 0.9892280131939755
local TABLE = {1}
local function fillTo(step)
do
local next = #TABLE
while next <= step do
TABLE[#TABLE + 1] = TABLE[next] * STEP_FACTOR
next = next + 1
end
end
end
local MAX_HALVINGS = 60
function ____exports.decayFactor(elapsedMs, halfLifeMs)
if not (elapsedMs > 0) then
return 1
end
local halfLives = elapsedMs / halfLifeMs
if halfLives >= MAX_HALVINGS then
return 0
end
local whole = math.floor(halfLives)
local position = (halfLives - whole) * STEPS
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
return ____exports
end,
["domain.scheduling.first-token"] = function(...) 
local ____exports = {}
local LEAST_DUE_MS = 3000
local DUE_FACTOR = 4.7
local LEAST_HEDGE_MS = 1000
local HEDGE_FACTOR = 2.2
function ____exports.firstTokenDueMs(facts)
if facts.ownTtftMs == 0 then
return nil
end
local ttftMs = math.max(facts.ownTtftMs, facts.poolTtftMs)
local size = (facts.promptTokens == nil or facts.meanPromptTokens == 0) and 1 or math.max(1, facts.promptTokens / facts.meanPromptTokens)
local dueMs = math.max(LEAST_DUE_MS, DUE_FACTOR * ttftMs * size)
local ____temp_0
if facts.ttftTimeoutMs > 0 and dueMs >= facts.ttftTimeoutMs then
____temp_0 = nil
else
____temp_0 = dueMs
end
return ____temp_0
end
function ____exports.hedgeAfterMs(poolTtftMs)
local ____temp_1
if poolTtftMs == 0 then
____temp_1 = nil
else
____temp_1 = math.max(LEAST_HEDGE_MS, HEDGE_FACTOR * poolTtftMs)
end
return ____temp_1
end
return ____exports
end,
["domain.scheduling.health"] = function(...) 
local ____exports = {}
local decay, moved, HALF_LIFE_MS
local ____decay_2Ejs = require("domain.scheduling.decay")
local decayFactor = ____decay_2Ejs.decayFactor
function decay(h, nowMs)
local left = decayFactor(nowMs - h.atMs, HALF_LIFE_MS)
h.successes = h.successes * left
h.failures = h.failures * left
h.atMs = nowMs
end
function moved(average, sample, alpha)
return average == 0 and sample or average + alpha * (sample - average)
end
HALF_LIFE_MS = 60000
local ALPHA = 0.1
local ALPHA_RISE = 0.2
local PRIOR_SUCCESSES = 9.5
local PRIOR = 10
function ____exports.newHealth()
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
function ____exports.noteSuccess(h, durationMs, tpotMs, nowMs)
decay(h, nowMs)
h.successes = h.successes + 1
h.samples = h.samples + 1
h.lastSuccessMs = nowMs
h.durationMs = moved(h.durationMs, durationMs, ALPHA)
if tpotMs ~= nil and tpotMs > 0 then
h.tpotMs = moved(h.tpotMs, tpotMs, ALPHA)
end
end
function ____exports.noteFailure(h, durationMs, nowMs)
decay(h, nowMs)
h.failures = h.failures + 1
h.failMs = moved(h.failMs, durationMs, ALPHA_RISE)
end
function ____exports.noteFirstToken(h, ttftMs)
h.ttftMs = moved(h.ttftMs, ttftMs, ttftMs > h.ttftMs and ALPHA_RISE or ALPHA)
end
function ____exports.successShare(h, nowMs)
local left = decayFactor(nowMs - h.atMs, HALF_LIFE_MS)
return (h.successes * left + PRIOR_SUCCESSES) / ((h.successes + h.failures) * left + PRIOR)
end
function ____exports.failureShare(h)
local all = h.successes + h.failures
return all < 1 and 0 or h.failures / all
end
return ____exports
end,
["domain.scheduling.in-force"] = function(...) 
local ____exports = {}
local ____pacer_2Ejs = require("domain.scheduling.pacer")
local lowerLimit = ____pacer_2Ejs.lowerLimit
local pacedRate = ____pacer_2Ejs.pacedRate
local pacedWindow = ____pacer_2Ejs.pacedWindow
local RAMP_MS = 10000
local LEAST_RAMP_SHARE = 0.1
local LEAST_RAMP_WINDOW = 2
local UNLIMITED_WINDOW = 512
function ____exports.windowInForce(state, source, nowMs)
local ____source_0 = source
local config = ____source_0.config
local configured = config.maxConcurrency > 0 and config.maxConcurrency or math.huge
local window = state.scheduling.pacer and pacedWindow(source.pacer, config, nowMs) or configured
local sinceMs = nowMs - source.reclosedAtMs
if not (sinceMs < RAMP_MS) then
return window
end
local whole = math.min(window, UNLIMITED_WINDOW)
local ramped = math.floor(whole * math.max(LEAST_RAMP_SHARE, sinceMs / RAMP_MS))
return math.min(
window,
math.max(LEAST_RAMP_WINDOW, ramped)
)
end
function ____exports.isRamping(source, nowMs)
return nowMs - source.reclosedAtMs < RAMP_MS
end
function ____exports.rateInForce(state, source, nowMs)
if state.scheduling.pacer then
return pacedRate(source.pacer, source.config, nowMs)
end
return source.rules.limits.rpm > 0 and source.rules.limits.rpm / 60 or math.huge
end
function ____exports.tokensInForce(source)
return lowerLimit(source.config.tpm, source.pacer.learnedTpm)
end
return ____exports
end,
["domain.scheduling.pacer"] = function(...) 
local ____lualib = require("lualib_bundle")
local __TS__ObjectAssign = ____lualib.__TS__ObjectAssign
local __TS__NumberIsFinite = ____lualib.__TS__NumberIsFinite
local ____exports = {}
local rateCap, intervalOf, countAdmitted, rollBuckets, cutRateFor, mayCutRate, cutRate, cutWindowFor, windowLevel, usable, MAX_WINDOW, BUCKET_MS, LEAST_SPAN_MS, LEAST_KNOWN_MS, MEASURED_MARGIN, WINDOW_GROWTH_PER_S, RATE_GROWTH_PER_S, MIN_RATE_PER_S, LEAST_MEASURED_PER_S, NO_LIMIT
local ____smooth_2Ejs = require("domain.gates.smooth")
local requestRate = ____smooth_2Ejs.requestRate
local smoothTake = ____smooth_2Ejs.smoothTake
local smoothWaitMs = ____smooth_2Ejs.smoothWaitMs
local ____cubic_2Ejs = require("domain.scheduling.cubic")
local cubicValue = ____cubic_2Ejs.cubicValue
local cut = ____cubic_2Ejs.cut
local neverCut = ____cubic_2Ejs.neverCut
local ____goodput_2Ejs = require("domain.scheduling.goodput")
local newGoodput = ____goodput_2Ejs.newGoodput
local noteLetThrough = ____goodput_2Ejs.noteLetThrough
local rateFloor = ____goodput_2Ejs.rateFloor
local windowFloor = ____goodput_2Ejs.windowFloor
local ____noise_2Ejs = require("domain.scheduling.noise")
local forgetNoise = ____noise_2Ejs.forgetNoise
local hearRefusal = ____noise_2Ejs.hearRefusal
local noNoise = ____noise_2Ejs.noNoise
local noteCut = ____noise_2Ejs.noteCut
local tellOfNoise = ____noise_2Ejs.tellOfNoise
function ____exports.pacedWindow(p, limits, nowMs)
local cap = limits.maxConcurrency > 0 and limits.maxConcurrency or MAX_WINDOW
if p.window.wMax == 0 then
return limits.maxConcurrency > 0 and cap or p.startWindow
end
local floor = windowFloor(p.goodput, p.attemptMs, nowMs)
local level = math.max(
cubicValue(p.window, nowMs, WINDOW_GROWTH_PER_S),
floor
)
return math.max(
1,
math.floor(math.min(level, cap))
)
end
function ____exports.pacedRate(p, limits, nowMs)
local cap = rateCap(p, limits)
local level = cubicValue(p.rate, nowMs, RATE_GROWTH_PER_S)
return math.min(
math.max(
level,
MIN_RATE_PER_S,
rateFloor(p.goodput, nowMs)
),
cap
)
end
function rateCap(p, limits)
local rpm = ____exports.lowerLimit(limits.rpm, p.learnedRpm)
return rpm == NO_LIMIT and math.huge or rpm / 60
end
function ____exports.lowerLimit(a, b)
if a == NO_LIMIT then
return b
end
return b == NO_LIMIT and a or math.min(a, b)
end
function intervalOf(p, limits, nowMs)
local rpm = ____exports.pacedRate(p, limits, nowMs) * 60
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
local bucket = math.floor(nowMs / BUCKET_MS)
if bucket == p.bucket then
return
end
p.earlierCount = bucket == p.bucket + 1 and p.bucketCount or 0
p.bucketCount = 0
p.bucket = bucket
end
function ____exports.measuredRate(p, nowMs)
rollBuckets(p, nowMs)
local share = nowMs / BUCKET_MS - p.bucket
local spanMs = math.min(
BUCKET_MS,
math.max(LEAST_SPAN_MS, nowMs - p.firstAdmittedMs)
)
return (p.bucketCount + p.earlierCount * (1 - share)) * 1000 / spanMs
end
function cutRateFor(p, limits, attempt, nowMs)
if not mayCutRate(p, attempt, nowMs) then
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
function mayCutRate(p, attempt, nowMs)
return not ____exports.isStale(p.rate, attempt) and nowMs - p.firstAdmittedMs >= LEAST_KNOWN_MS
end
function cutRate(p, limits, nowMs)
local measured = math.max(
MEASURED_MARGIN * ____exports.measuredRate(p, nowMs),
LEAST_MEASURED_PER_S
)
cut(
p.rate,
math.min(
____exports.pacedRate(p, limits, nowMs),
measured
),
nowMs
)
p.rateToleranceMs = intervalOf(p, limits, nowMs).toleranceMs
end
function cutWindowFor(p, limits, attempt, nowMs)
if ____exports.isStale(p.window, attempt) then
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
____exports.pacedWindow(p, limits, nowMs)
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
____exports.pacedWindow(p, limits, nowMs),
attempt.inflight
)
)
end
function ____exports.isStale(c, attempt)
return c.wMax ~= 0 and attempt.startedAtMs <= c.cutAtMs
end
function ____exports.cutWindowTo(p, level, nowMs, newsMs)
if newsMs == nil then
newsMs = 0
end
cut(
p.window,
math.max(1, level),
nowMs,
newsMs
)
forgetNoise(p.windowNoise)
end
function usable(limit)
return limit ~= nil and limit > 0 and __TS__NumberIsFinite(limit) and limit or nil
end
local START_WINDOW = 8
MAX_WINDOW = 512
BUCKET_MS = 10000
LEAST_SPAN_MS = 1000
LEAST_KNOWN_MS = 5000
MEASURED_MARGIN = 1.05
WINDOW_GROWTH_PER_S = 0.1
RATE_GROWTH_PER_S = 1 / 60
MIN_RATE_PER_S = 0.05
LEAST_MEASURED_PER_S = 1
local EARLY_REQUESTS_S = 1
local EARLY_TOKENS_S = 0.5
NO_LIMIT = 0
function ____exports.newPacer()
return {
window = neverCut(),
rate = neverCut(),
windowNoise = noNoise(),
rateNoise = noNoise(),
goodput = newGoodput(),
attemptMs = 0,
startWindow = START_WINDOW,
rateTatMs = 0,
rateToleranceMs = 0,
learnedRpm = NO_LIMIT,
learnedTpm = NO_LIMIT,
firstAdmittedMs = -1,
admitted = 0,
bucket = -1,
bucketCount = 0,
earlierCount = 0
}
end
function ____exports.pacedInterval(p, limits, nowMs)
if p.rate.wMax == 0 then
return nil
end
return {
intervalMs = intervalOf(p, limits, nowMs).intervalMs,
toleranceMs = p.rateToleranceMs
}
end
function ____exports.pacedWaitMs(p, limits, nowMs)
local interval = ____exports.pacedInterval(p, limits, nowMs)
return interval == nil and 0 or smoothWaitMs(interval, p.rateTatMs, nowMs)
end
function ____exports.notePacedGrant(p, limits, startMs, nowMs)
countAdmitted(p, nowMs)
noteLetThrough(p.goodput)
local interval = ____exports.pacedInterval(p, limits, nowMs)
if interval ~= nil then
p.rateTatMs = smoothTake(interval, p.rateTatMs, startMs, 1)
end
end
function ____exports.cutFor(p, limits, dimension, attempt, nowMs)
local hasCut = false
if dimension ~= "concurrency" then
hasCut = cutRateFor(p, limits, attempt, nowMs)
end
local mayBeWindow = dimension == "unknown" and attempt.inflight * 2 >= ____exports.pacedWindow(p, limits, nowMs)
if dimension == "concurrency" or mayBeWindow then
hasCut = cutWindowFor(p, limits, attempt, nowMs) or hasCut
end
return hasCut
end
function ____exports.cutForHang(p, limits, attempt, newsMs, nowMs)
if ____exports.isStale(p.window, attempt) then
return
end
____exports.cutWindowTo(
p,
windowLevel(p, limits, attempt, nowMs),
nowMs,
newsMs
)
end
function ____exports.growStartWindow(p, limits, inflight)
if limits.maxConcurrency > 0 or p.window.wMax ~= 0 or p.startWindow >= MAX_WINDOW then
return
end
if inflight * 2 >= p.startWindow then
p.startWindow = p.startWindow + 1
end
end
function ____exports.emptyBurst(p, limits, openAtMs, nowMs)
local interval = ____exports.pacedInterval(p, limits, nowMs)
if interval ~= nil then
p.rateTatMs = math.max(p.rateTatMs, openAtMs + interval.toleranceMs)
end
end
function ____exports.learnLimits(p, told)
local rpm = usable(told.limitRequests) or p.learnedRpm
local tpm = usable(told.limitTokens) or p.learnedTpm
if rpm == p.learnedRpm and tpm == p.learnedTpm then
return false
end
p.learnedRpm = rpm
p.learnedTpm = tpm
return true
end
function ____exports.cutEarly(p, limits, told, attempt, nowMs)
local ____told_0 = told
local remainingRequests = ____told_0.remainingRequests
local remainingTokens = ____told_0.remainingTokens
local tpm = ____exports.lowerLimit(limits.tpm, p.learnedTpm)
local isShortOfTokens = remainingTokens ~= nil and tpm > 0 and remainingTokens < EARLY_TOKENS_S * (tpm / 60)
local rate = ____exports.pacedRate(p, limits, nowMs)
local isShortOfRequests = remainingRequests ~= nil and rate ~= math.huge and remainingRequests < EARLY_REQUESTS_S * rate
if not (isShortOfTokens or isShortOfRequests) or not mayCutRate(p, attempt, nowMs) then
return false
end
cutRate(p, limits, nowMs)
forgetNoise(p.rateNoise)
return true
end
return ____exports
end,
["domain.scheduling.cubic"] = function(...) 
local ____exports = {}
____exports.BETA = 0.85
local K_MIN_MS = 20000
local K_MAX_MS = 120000
local NEWS_PER_K = 2
local K_GROWTH = 1.5
local STABLE_SHARE = 0.25
local PLATEAU = 0.98
function ____exports.neverCut()
return {wMax = 0, cutAtMs = 0, kMs = K_MIN_MS}
end
function ____exports.cubicValue(c, nowMs, linearPerS)
if c.wMax == 0 then
return math.huge
end
local sinceMs = math.max(0, nowMs - c.cutAtMs)
local x = (sinceMs - c.kMs) / c.kMs
local g = x < 0 and x * x * x or x + x * x * x
local cubic = PLATEAU * c.wMax * (1 + (1 - ____exports.BETA) * g)
local back = math.min(____exports.BETA * c.wMax + linearPerS * sinceMs / 1000, PLATEAU * c.wMax)
local beyond = linearPerS * math.max(0, sinceMs - c.kMs) / 1000
return math.max(cubic, back + beyond)
end
function ____exports.cut(c, level, nowMs, newsMs)
if newsMs == nil then
newsMs = 0
end
if c.wMax == 0 then
c.wMax = level
c.kMs = K_MIN_MS
else
local isStable = math.abs(level - c.wMax) < STABLE_SHARE * c.wMax
c.kMs = isStable and math.max(
c.kMs,
math.min(K_GROWTH * c.kMs, K_MAX_MS)
) or K_MIN_MS
c.wMax = level
end
c.kMs = math.max(c.kMs, NEWS_PER_K * newsMs)
c.cutAtMs = nowMs
end
function ____exports.resume(c, level, nowMs)
c.wMax = level
c.kMs = K_MIN_MS
c.cutAtMs = nowMs - c.kMs
end
return ____exports
end,
["domain.scheduling.goodput"] = function(...) 
local ____exports = {}
local bestNow, MEMORY_HALF_LIFE_MS
local ____decay_2Ejs = require("domain.scheduling.decay")
local decayFactor = ____decay_2Ejs.decayFactor
function bestNow(g, nowMs)
return g.bestPerS == 0 and 0 or g.bestPerS * decayFactor(nowMs - g.bestAtMs, MEMORY_HALF_LIFE_MS)
end
local AVERAGE_HALF_LIFE_MS = 20000
local LEAST_SPAN_MS = 60000
MEMORY_HALF_LIFE_MS = 600000
local FLOOR_SHARE = 0.5
local LEAST_REFUSED = 3
local CHANGED_SHARE = 0.25
local MOST_COUNTED = 60
function ____exports.newGoodput()
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
function ____exports.noteAnswer(g, nowMs)
if g.firstAtMs < 0 then
g.firstAtMs = nowMs
end
g.weight = g.weight * decayFactor(nowMs - g.atMs, AVERAGE_HALF_LIFE_MS) + 1
g.atMs = nowMs
local spanMs = nowMs - g.firstAtMs
if spanMs < LEAST_SPAN_MS then
return
end
local fullMs = AVERAGE_HALF_LIFE_MS / 0.6931471805599453 * (1 - decayFactor(spanMs, AVERAGE_HALF_LIFE_MS))
local perS = g.weight * 1000 / fullMs
if perS <= bestNow(g, nowMs) then
return
end
g.bestPerS = perS
g.bestAtMs = nowMs
end
function ____exports.noteLetThrough(g)
g.granted = g.granted + 1
if g.granted <= MOST_COUNTED then
return
end
g.granted = g.granted / 2
g.refused = g.refused / 2
end
function ____exports.noteRefused(g)
g.refused = g.refused + 1
if g.refused < LEAST_REFUSED or g.refused <= CHANGED_SHARE * g.granted then
return
end
g.bestPerS = 0
g.weight = 0
g.firstAtMs = -1
end
function ____exports.rateFloor(g, nowMs)
return FLOOR_SHARE * bestNow(g, nowMs)
end
function ____exports.windowFloor(g, durationMs, nowMs)
return math.ceil(____exports.rateFloor(g, nowMs) * durationMs / 1000)
end
return ____exports
end,
["domain.scheduling.noise"] = function(...) 
local ____exports = {}
local endRow, weighRare, begin, isStillNoise, RARE_GAP, RARE_SHARE, LATE_SHARE, CALM_MS, WORSE_SHARE, LEAST_REFUSALS
local ____cubic_2Ejs = require("domain.scheduling.cubic")
local BETA = ____cubic_2Ejs.BETA
local resume = ____cubic_2Ejs.resume
function ____exports.forgetNoise(n)
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
if shareOfCurve < RARE_SHARE and gap >= RARE_GAP then
n.rareCuts = n.rareCuts + 1
end
if shareOfCurve > LATE_SHARE then
n.rareCuts = math.max(0, n.rareCuts - 1)
end
end
function begin(n, c, usualGap, nowMs)
____exports.forgetNoise(n)
n.usualGap = usualGap
resume(c, n.fullLevel, nowMs)
return true
end
function isStillNoise(n, gap, calmMs)
n.attempts = n.attempts + gap
n.refusals = n.refusals + 1
local isJudged = n.refusals >= LEAST_REFUSALS
if calmMs > CALM_MS or isJudged and n.attempts < WORSE_SHARE * n.usualGap * n.refusals then
____exports.forgetNoise(n)
return false
end
if n.refusals >= 2 * LEAST_REFUSALS then
n.attempts = n.attempts / 2
n.refusals = n.refusals / 2
end
return true
end
local MOST_VAIN_CUTS = 4
local LEAST_SHARE = 0.35
local EARLY_SHARE = 0.5
local LEAST_GAP = 8
local MOST_RARE_CUTS = 2
RARE_GAP = 30
RARE_SHARE = 0.25
LATE_SHARE = 0.8
local RARE_USUAL_GAP = 75
CALM_MS = 120000
local KEPT_SHARE = 0.85
WORSE_SHARE = 0.4
LEAST_REFUSALS = 6
function ____exports.noNoise()
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
function ____exports.noteCut(n, level)
n.fullLevel = math.max(n.fullLevel, level)
end
function ____exports.hearRefusal(n, c, attempts, attemptMs, nowMs)
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
if n.rareCuts >= MOST_RARE_CUTS then
return begin(n, c, RARE_USUAL_GAP, nowMs)
end
if sinceCutMs >= EARLY_SHARE * c.kMs then
endRow(n)
n.fullLevel = n.fullLevel * KEPT_SHARE
return false
end
n.attempts = n.attempts + gap
n.refusals = n.refusals + 1
if sinceCutMs >= attemptMs then
n.vainCuts = n.vainCuts + 1
end
if n.vainCuts < MOST_VAIN_CUTS and BETA * c.wMax > LEAST_SHARE * n.fullLevel then
return false
end
local usualGap = n.attempts / n.refusals
return usualGap >= LEAST_GAP and begin(n, c, usualGap, nowMs)
end
function ____exports.tellOfNoise(known, other, c, nowMs)
if known.usualGap >= RARE_GAP and other.usualGap == 0 and other.fullLevel > 0 then
begin(other, c, known.usualGap, nowMs)
end
end
return ____exports
end,
["domain.scheduling.pool"] = function(...) 
local ____lualib = require("lualib_bundle")
local __TS__Iterator = ____lualib.__TS__Iterator
local __TS__ArraySort = ____lualib.__TS__ArraySort
local ____exports = {}
local measurePool, median, LEAST_POOL
local ____health_2Ejs = require("domain.scheduling.health")
local failureShare = ____health_2Ejs.failureShare
function measurePool(state, nowMs)
local ttfts = {}
local tpots = {}
local failures = {}
for ____, ____value in __TS__Iterator(state.sources:values()) do
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
failShare = #failures < LEAST_POOL and 0 or median(failures)
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
LEAST_POOL = 3
local FRESH_MS = 250
function ____exports.poolOf(state, nowMs)
local ____state_0 = state
local pool = ____state_0.pool
if pool ~= nil and nowMs - pool.measuredAtMs < FRESH_MS then
return pool
end
local measured = measurePool(state, nowMs)
state.pool = measured
return measured
end
return ____exports
end,
["domain.standing"] = function(...) 
local ____lualib = require("lualib_bundle")
local __TS__ArrayIndexOf = ____lualib.__TS__ArrayIndexOf
local __TS__NumberIsFinite = ____lualib.__TS__NumberIsFinite
local ____exports = {}
local fitsAll, renewStale, judgedStanding, fittingStanding, gateFacts, waiting, rankOf, neverFits, breakerReason, openFacts, gateStanding, prefetchMs, countsMinutes, pacerWaitMs, untilMs, RECHECK_MS
local ____breaker_2Ejs = require("domain.breaker")
local breakerAdmission = ____breaker_2Ejs.breakerAdmission
local ____cooldown_2Ejs = require("domain.cooldown")
local cooldownWaitMs = ____cooldown_2Ejs.cooldownWaitMs
local ____gate_2Ejs = require("domain.gates.gate")
local requestWaitMs = ____gate_2Ejs.requestWaitMs
local tokenWaitMs = ____gate_2Ejs.tokenWaitMs
local ____lineup_2Ejs = require("domain.lineup")
local newLineup = ____lineup_2Ejs.newLineup
local replaceStanding = ____lineup_2Ejs.replaceStanding
local ____refusal_2Ejs = require("domain.refusal")
local endsAnyTime = ____refusal_2Ejs.endsAnyTime
local ____in_2Dforce_2Ejs = require("domain.scheduling.in-force")
local windowInForce = ____in_2Dforce_2Ejs.windowInForce
local ____pacer_2Ejs = require("domain.scheduling.pacer")
local pacedWaitMs = ____pacer_2Ejs.pacedWaitMs
local ____token_2Dlearning_2Ejs = require("domain.scheduling.token-learning")
local learnedTokens = ____token_2Dlearning_2Ejs.learnedTokens
function ____exports.estimatedTokens(state, source, want)
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
function ____exports.isTokenLimited(state, source)
return source.rules.tokens ~= nil or state.globalRules.tokens ~= nil
end
function fitsAll(state, ____bindingPattern0, want)
local tightest
tightest = ____bindingPattern0.tightest
for ____, source in ipairs(tightest) do
if ____exports.estimatedTokens(state, source, want) > source.mostTokens then
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
____exports.standingOf(state, stale, want, clock)
)
end
end
function ____exports.standingOf(state, source, want, clock)
local ____state_keepsFacts_4
if state.keepsFacts then
____state_keepsFacts_4 = source.standing
else
____state_keepsFacts_4 = nil
end
local kept = ____state_keepsFacts_4
if kept ~= nil and (source.mostTokens == 0 or ____exports.estimatedTokens(state, source, want) <= source.mostTokens) then
return kept
end
local tokens = ____exports.isTokenLimited(state, source) and ____exports.estimatedTokens(state, source, want) or 0
return judgedStanding(state, source, clock, tokens)
end
function judgedStanding(state, source, clock, tokens)
if neverFits(source.config.tpm, tokens) then
return waiting(source, math.huge, "tpm")
end
if neverFits(state.globalRules.limits.tpm, tokens) then
return waiting(source, math.huge, "global_tpm")
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
if not countsMinutes(state, source) then
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
rank = rankOf(source, false),
waitMs = waitMs,
reason = reason,
probe = false,
startable = false
}
end
function rankOf(____bindingPattern0, probe)
local config
config = ____bindingPattern0.config
return probe and 2 * config.priority or 2 * config.priority + 1
end
function neverFits(tpm, tokens)
return tpm > 0 and tokens > tpm
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
waitMs = math.max(waitMs, globalMs)
end
local ownMs = math.max(
requestWaitMs(source.rules, source.gates, clock),
pacerWaitMs(state, source, clock)
)
if ownMs > 0 then
if reason == nil then
reason = "rpm"
end
waitMs = math.max(waitMs, ownMs)
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
waitMs = math.max(waitMs, globalMs)
end
local ownMs = tokenWaitMs(source.rules, source.gates, clock, tokens)
if ownMs > 0 then
if reason == nil then
reason = "tpm"
end
waitMs = math.max(waitMs, ownMs)
end
local mayBeAhead = not facts.needsRelease and not probe
local startable = waitMs == 0 or mayBeAhead and waitMs <= prefetchMs(state, source)
return {
source = source,
rank = rankOf(source, probe),
waitMs = waitMs,
reason = reason,
probe = probe,
startable = startable
}
end
function prefetchMs(state, source)
return countsMinutes(state, source) and 0 or state.scheduling.prefetchMs
end
function countsMinutes(state, source)
return source.config.limitRule == "window" or state.globalRules.limits.limitRule == "window"
end
function pacerWaitMs(state, source, clock)
return state.scheduling.pacer and pacedWaitMs(source.pacer, source.config, clock.nowMs) or 0
end
function untilMs(momentMs, state, clock)
local leftMs = math.max(1, (momentMs or clock.nowMs) - clock.nowMs)
return state.scheduling.prefetchMs > 0 and math.min(leftMs, RECHECK_MS) or leftMs
end
function ____exports.standingsOf(state, want, clock)
local ____state_2 = state
local lineup = ____state_2.lineup
if lineup ~= nil and lineup.candidates == want.candidates and fitsAll(state, lineup, want) then
renewStale(state, lineup, want, clock)
return lineup.standings
end
local standings = {}
local areKept = state.keepsFacts
for ____, name in ipairs(want.candidates) do
local source = state.sources:get(name)
local standing = ____exports.standingOf(state, source, want, clock)
standings[#standings + 1] = standing
if source.standing ~= standing then
areKept = false
end
end
state.lineup = areKept and newLineup(want, standings) or nil
return standings
end
function ____exports.hasRoomNow(state, source, clock)
if source.breaker.state ~= "closed" then
return false
end
return judgedStanding(state, source, clock, 0).startable
end
function ____exports.usualRefusal(state, source, clock)
local usual = math.floor(state.meanTokens + 0.5)
local ____judgedStanding_result_9 = judgedStanding(state, source, clock, usual)
local waitMs = ____judgedStanding_result_9.waitMs
local reason = ____judgedStanding_result_9.reason
if reason == nil or waitMs <= 0 then
return nil
end
local isKnown = __TS__NumberIsFinite(waitMs) and not endsAnyTime(reason)
return {reason = reason, waitMs = isKnown and waitMs or 0}
end
RECHECK_MS = 1000
return ____exports
end,
["domain.breaker"] = function(...) 
local ____exports = {}
local forgetSamples, applyProbeOutcome, close, enterOpen, payBackTrips, stretchOf, countSample, shouldTrip, NEVER, STRETCHES, OPEN_GROWTH, OPEN_JITTER, TRIP_PAYBACK_MS
local ____random_2Ejs = require("domain.random")
local jittered = ____random_2Ejs.jittered
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
function ____exports.handBackProbe(b, leaseId)
if b.probeLease == leaseId then
b.probeLease = ""
end
end
function applyProbeOutcome(b, config, leaseId, outcome, rateLimited, isPanic, nowMs, random)
if outcome == "cancelled" or outcome == "alive" and rateLimited then
____exports.handBackProbe(b, leaseId)
return false
end
if outcome == "failure" then
____exports.trip(
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
return ____exports.passProbe(b, leaseId, nowMs)
end
function ____exports.passProbe(b, leaseId, nowMs)
b.probesLeft = b.probesLeft - 1
if b.probesLeft > 0 then
____exports.handBackProbe(b, leaseId)
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
function ____exports.trip(b, config, isPanic, nowMs, random)
payBackTrips(b, nowMs)
if not isPanic or b.trips == 0 then
b.trips = b.trips + 1
end
b.dead = false
enterOpen(
b,
nowMs + ____exports.openTimeMs(config, b.trips, random)
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
function ____exports.openTimeMs(config, trips, random)
local timeMs = config.cooldownMs
do
local n = 1
while n < trips and timeMs < config.cooldownMaxMs do
timeMs = timeMs * OPEN_GROWTH
n = n + 1
end
end
return math.min(
config.cooldownMaxMs,
jittered(timeMs, OPEN_JITTER, random)
)
end
function payBackTrips(b, nowMs)
if b.state ~= "closed" then
return
end
local paid = math.floor((nowMs - b.closedAtMs) / TRIP_PAYBACK_MS)
b.trips = math.max(0, b.trips - paid)
b.closedAtMs = b.closedAtMs + paid * TRIP_PAYBACK_MS
end
function stretchOf(config, nowMs)
return math.floor(nowMs * STRETCHES / config.windowMs)
end
function countSample(b, config, success, nowMs)
local ____b_stretches_0 = b.stretches
local ids = ____b_stretches_0.ids
local successes = ____b_stretches_0.successes
local failures = ____b_stretches_0.failures
local id = stretchOf(config, nowMs)
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
local newest = stretchOf(config, nowMs)
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
return recentSuccesses < math.max(3, recentFailures)
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
OPEN_GROWTH = 1.7
OPEN_JITTER = 0.1
TRIP_PAYBACK_MS = 10000
local DEAD_BASE_MS = 60000
local DEAD_MAX_MS = 30 * 60000
function ____exports.closedBreaker(nowMs)
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
local PROBE_RECHECK_MS = 1000
function ____exports.breakerAdmission(b, config, nowMs, probeEndsMs)
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
math.max(PROBE_RECHECK_MS, config.cooldownMs)
)
}
end
function ____exports.startProbe(b, leaseId)
b.state = "half_open"
b.probeLease = leaseId
end
function ____exports.isCurrent(b, leaseId, epoch)
if b.epoch ~= epoch then
return false
end
return b.state == "closed" or b.state == "half_open" and b.probeLease == leaseId
end
function ____exports.applyOutcome(b, config, leaseId, outcome, rateLimited, isPanic, nowMs, random)
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
____exports.trip(
b,
config,
isPanic,
nowMs,
random
)
return true
end
function ____exports.forceOpen(b, nowMs, recheckMs)
payBackTrips(b, nowMs)
b.deadInARow = b.deadInARow + 1
b.dead = true
local waitMs = DEAD_BASE_MS
do
local n = 1
while n < b.deadInARow and waitMs < DEAD_MAX_MS do
waitMs = waitMs * 2
n = n + 1
end
end
enterOpen(
b,
nowMs + math.min(DEAD_MAX_MS, recheckMs or waitMs)
)
end
return ____exports
end,
["domain.lineup"] = function(...) 
local ____lualib = require("lualib_bundle")
local __TS__ArrayFindIndex = ____lualib.__TS__ArrayFindIndex
local ____exports = {}
local tightestOf, areUsedAlike
function tightestOf(standings)
local tightest = {}
for ____, ____value in ipairs(standings) do
local source = ____value.source
do
local __continue11
repeat
if source.mostTokens == 0 then
__continue11 = true
break
end
local at = __TS__ArrayFindIndex(
tightest,
function(____, other) return areUsedAlike(source, other) end
)
if at < 0 then
tightest[#tightest + 1] = source
elseif source.mostTokens < tightest[at + 1].mostTokens then
tightest[at + 1] = source
end
__continue11 = true
until true
if not __continue11 then
break
end
end
end
return tightest
end
function areUsedAlike(a, b)
return a.sizes == b.sizes and a.config.estTokens == b.config.estTokens and a.config.tpmCharge == b.config.tpmCharge
end
local NOT_FOUND = -1
function ____exports.newLineup(____bindingPattern0, standings)
local maxTokens
local tag
local candidates
candidates = ____bindingPattern0.candidates
tag = ____bindingPattern0.tag
maxTokens = ____bindingPattern0.maxTokens
local scores = {}
do
local n = 0
while n < #standings do
scores[#scores + 1] = NOT_FOUND
n = n + 1
end
end
return {
candidates = candidates,
standings = standings,
tightest = tightestOf(standings),
scores = scores,
tag = tag,
maxTokens = maxTokens,
stale = nil
}
end
function ____exports.replaceStanding(____bindingPattern0, at, standing)
local scores
local standings
standings = ____bindingPattern0.standings
scores = ____bindingPattern0.scores
standings[at + 1] = standing
scores[at + 1] = NOT_FOUND
end
function ____exports.scoreFor(lineup, ____bindingPattern0)
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
lineup.scores[at + 1] = NOT_FOUND
at = at + 1
end
end
lineup.tag = tag
lineup.maxTokens = maxTokens
end
return ____exports
end,
["domain.refusal"] = function(...) 
local ____lualib = require("lualib_bundle")
local __TS__ArrayIncludes = ____lualib.__TS__ArrayIncludes
local __TS__ObjectAssign = ____lualib.__TS__ObjectAssign
local __TS__NumberIsFinite = ____lualib.__TS__NumberIsFinite
local ____exports = {}
local isGate, askAgainMs, gateOf, refusalKind, describePassed, NONE_PASSED
local ____tick_2Ejs = require("domain.tick")
local GATE_NAMES = ____tick_2Ejs.GATE_NAMES
function isGate(reason)
return __TS__ArrayIncludes(GATE_NAMES, reason)
end
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
return reason ~= nil and isGate(reason) and ({gate = reason}) or ({})
end
function refusalKind(reason)
if reason == "cooling" then
return "cooldown"
end
return reason ~= nil and isGate(reason) and "gate" or "breaker"
end
function ____exports.passedOver(all, considered, chosen)
local isWhole = considered == all
local passed = nil
for ____, standing in ipairs(all) do
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
waitMs = __TS__NumberIsFinite(waitMs) and waitMs or 0
},
lastError == nil and ({}) or ({lastError = lastError})
)
end
function ____exports.endsAnyTime(reason)
return reason == "concurrency" or reason == "global_concurrency" or reason == "half_open"
end
NONE_PASSED = {}
function ____exports.refuse(want, all, standings, prefetchMs)
local nearest = nil
for ____, standing in ipairs(standings) do
if nearest == nil or standing.waitMs < nearest.waitMs then
nearest = standing
end
end
local passed = ____exports.passedOver(all, standings, nil)
if nearest == nil or nearest.waitMs == math.huge then
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
function ____exports.refuseFor(kind, want, waitHintMs, standings)
return {
leaseId = want.leaseId,
kind = kind,
waitHintMs = waitHintMs,
passedOver = ____exports.passedOver(standings, standings, nil)
}
end
return ____exports
end,
["domain.tick"] = function(...) 
local ____exports = {}
____exports.GATE_NAMES = {
"global_concurrency",
"concurrency",
"global_rpm",
"rpm",
"global_tpm",
"tpm"
}
return ____exports
end,
["domain.scheduling.token-learning"] = function(...) 
local ____lualib = require("lualib_bundle")
local Map = ____lualib.Map
local __TS__New = ____lualib.__TS__New
local __TS__Iterator = ____lualib.__TS__Iterator
local __TS__NumberIsFinite = ____lualib.__TS__NumberIsFinite
local ____exports = {}
local ALPHA = 0.05
local LEAST_SAMPLES = 20
____exports.MOST_TOKEN_RECORDS = 4096
function ____exports.newTokenBook()
local records = __TS__New(Map)
return {
get = function(____, tag) return records:get(tag) end,
add = function(self, tag, record)
if records.size >= ____exports.MOST_TOKEN_RECORDS then
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
function ____exports.learnedTokens(book, tag, promptTokens, maxTokens)
local known = book:get(tag)
if known == nil or known.samples < LEAST_SAMPLES then
return nil
end
return math.max(
1,
math.ceil(promptTokens * known.inRatio + math.min(maxTokens or math.huge, known.outTokens))
)
end
function ____exports.learnedOutTokens(book, tag)
local known = book:get(tag)
local ____temp_0
if known == nil or known.samples < LEAST_SAMPLES then
____temp_0 = nil
else
____temp_0 = known.outTokens
end
return ____temp_0
end
function ____exports.learnTokens(book, tag, estimatedIn, actualIn, actualOut)
local ratio = actualIn / math.max(1, estimatedIn)
if not __TS__NumberIsFinite(ratio) or not __TS__NumberIsFinite(actualOut) or ratio < 0 or actualOut < 0 then
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
local alpha = math.max(ALPHA, 1 / (known.samples + 1))
known.samples = known.samples + 1
known.inDeviation = known.inDeviation + alpha * (math.abs(ratio - known.inRatio) - known.inDeviation)
known.outDeviation = known.outDeviation + alpha * (math.abs(actualOut - known.outTokens) - known.outDeviation)
known.inRatio = known.inRatio + alpha * (ratio - known.inRatio)
known.outTokens = known.outTokens + alpha * (actualOut - known.outTokens)
end
return ____exports
end,
["domain.settlement"] = function(...) 
local ____lualib = require("lualib_bundle")
local __TS__ObjectAssign = ____lualib.__TS__ObjectAssign
local ____exports = {}
local settleBooks, teach, APPLIED
local ____breaker_2Ejs = require("domain.breaker")
local forceOpen = ____breaker_2Ejs.forceOpen
local handBackProbe = ____breaker_2Ejs.handBackProbe
local isCurrent = ____breaker_2Ejs.isCurrent
local ____gate_2Ejs = require("domain.gates.gate")
local settleGates = ____gate_2Ejs.settleGates
local ____evidence_2Dflow_2Ejs = require("domain.scheduling.evidence-flow")
local applyAttempt = ____evidence_2Dflow_2Ejs.applyAttempt
local coolAfter = ____evidence_2Dflow_2Ejs.coolAfter
local hearFirstToken = ____evidence_2Dflow_2Ejs.hearFirstToken
local hearOverdue = ____evidence_2Dflow_2Ejs.hearOverdue
local ____learning_2Ejs = require("domain.scheduling.learning")
local learnFrom = ____learning_2Ejs.learnFrom
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
function ____exports.settle(state, s, clock, random)
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
function ____exports.hear(state, v, clock, random)
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
function ____exports.reclaimExpired(state, clock)
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
return ____exports
end,
["domain.scheduling.evidence-flow"] = function(...) 
local ____lualib = require("lualib_bundle")
local __TS__StringIncludes = ____lualib.__TS__StringIncludes
local __TS__Iterator = ____lualib.__TS__Iterator
local ____exports = {}
local relieve, evidenceOf, isSlow, isOnlyOneLeft, noteChange, SLOW_FACTOR, LEAST_SLOW_MS, MOST_PROBES
local ____breaker_2Ejs = require("domain.breaker")
local applyOutcome = ____breaker_2Ejs.applyOutcome
local passProbe = ____breaker_2Ejs.passProbe
local trip = ____breaker_2Ejs.trip
local ____cooldown_2Ejs = require("domain.cooldown")
local coolDown = ____cooldown_2Ejs.coolDown
local endCooldown = ____cooldown_2Ejs.endCooldown
local isOfLastWave = ____cooldown_2Ejs.isOfLastWave
local ____evidence_2Ejs = require("domain.scheduling.evidence")
local addEvidence = ____evidence_2Ejs.addEvidence
local isMostlyHanging = ____evidence_2Ejs.isMostlyHanging
local restartEvidence = ____evidence_2Ejs.restartEvidence
local ____goodput_2Ejs = require("domain.scheduling.goodput")
local noteRefused = ____goodput_2Ejs.noteRefused
local ____learning_2Ejs = require("domain.scheduling.learning")
local learnFirstToken = ____learning_2Ejs.learnFirstToken
local ____pacer_2Ejs = require("domain.scheduling.pacer")
local cutFor = ____pacer_2Ejs.cutFor
local cutForHang = ____pacer_2Ejs.cutForHang
local emptyBurst = ____pacer_2Ejs.emptyBurst
local ____pool_2Ejs = require("domain.scheduling.pool")
local poolOf = ____pool_2Ejs.poolOf
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
return s.durationMs > math.max(LEAST_SLOW_MS, SLOW_FACTOR * usualMs)
end
function isOnlyOneLeft(state, source)
if state.sources.size == 1 then
return false
end
for ____, other in __TS__Iterator(state.sources:values()) do
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
local hung = state.scheduling.evidence and isMostlyHanging(evidence)
breaker.probesLeft = hung and math.max(
1,
math.min(MOST_PROBES, breaker.trips)
) or 1
elseif breaker.state == "closed" then
restartEvidence(evidence, state.scheduling.ramp, nowMs)
if state.scheduling.ramp then
source.reclosedAtMs = nowMs
end
end
end
SLOW_FACTOR = 4
LEAST_SLOW_MS = 1000
MOST_PROBES = 3
function ____exports.coolAfter(state, ____bindingPattern0, lease, s, nowMs, random)
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
local isNews = cooldown.limitedInARow == 0 or isOfLastWave(cooldown, lease.startedAtMs)
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
function ____exports.applyAttempt(state, source, lease, s, nowMs, random)
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
function ____exports.hearOverdue(state, source, lease, nowMs, random)
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
function ____exports.hearFirstToken(state, source, lease, v, isCurrent, nowMs)
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
return ____exports
end,
["domain.scheduling.learning"] = function(...) 
local ____lualib = require("lualib_bundle")
local __TS__ObjectAssign = ____lualib.__TS__ObjectAssign
local ____exports = {}
local growWindow, learnSize, hearLimits
local ____gate_2Ejs = require("domain.gates.gate")
local gateRules = ____gate_2Ejs.gateRules
local ____budgets_2Ejs = require("domain.scheduling.budgets")
local earn = ____budgets_2Ejs.earn
local ____cubic_2Ejs = require("domain.scheduling.cubic")
local BETA = ____cubic_2Ejs.BETA
local ____goodput_2Ejs = require("domain.scheduling.goodput")
local noteAnswer = ____goodput_2Ejs.noteAnswer
local ____gradient_2Ejs = require("domain.scheduling.gradient")
local gradientShare = ____gradient_2Ejs.gradientShare
local ____health_2Ejs = require("domain.scheduling.health")
local noteFailure = ____health_2Ejs.noteFailure
local noteFirstToken = ____health_2Ejs.noteFirstToken
local noteSuccess = ____health_2Ejs.noteSuccess
local ____in_2Dforce_2Ejs = require("domain.scheduling.in-force")
local windowInForce = ____in_2Dforce_2Ejs.windowInForce
local ____pacer_2Ejs = require("domain.scheduling.pacer")
local cutEarly = ____pacer_2Ejs.cutEarly
local cutWindowTo = ____pacer_2Ejs.cutWindowTo
local growStartWindow = ____pacer_2Ejs.growStartWindow
local isStale = ____pacer_2Ejs.isStale
local learnLimits = ____pacer_2Ejs.learnLimits
local lowerLimit = ____pacer_2Ejs.lowerLimit
local ____token_2Dlearning_2Ejs = require("domain.scheduling.token-learning")
local learnTokens = ____token_2Dlearning_2Ejs.learnTokens
function ____exports.learnFirstToken(state, ____bindingPattern0, ttftMs)
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
if share == nil or isStale(pacer.window, lease) then
return
end
cutWindowTo(
pacer,
math.min(
windowInForce(state, source, nowMs),
inflight
) * share / BETA,
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
local rpm = lowerLimit(config.rpm, pacer.learnedRpm)
local tpm = lowerLimit(config.tpm, pacer.learnedTpm)
source.rules = gateRules(__TS__ObjectAssign({}, config, {rpm = rpm, tpm = tpm}))
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
function ____exports.learnFrom(state, source, lease, s, nowMs)
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
____exports.learnFirstToken(state, source, s.ttftMs)
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
return ____exports
end,
["domain.scheduling.budgets"] = function(...) 
local ____exports = {}
____exports.MOST_TOKENS = 20
local RETRY_PER_SUCCESS = 0.1
local HEDGE_PER_SUCCESS = 0.05
____exports.FREE_RETRIES = 3
function ____exports.newBudgets()
return {retryTokens = ____exports.MOST_TOKENS, hedgeTokens = 1}
end
function ____exports.earn(b)
b.retryTokens = math.min(____exports.MOST_TOKENS, b.retryTokens + RETRY_PER_SUCCESS)
b.hedgeTokens = math.min(____exports.MOST_TOKENS, b.hedgeTokens + HEDGE_PER_SUCCESS)
end
function ____exports.mayRetry(b, retriesInFlight)
return b.retryTokens >= 1 or retriesInFlight < ____exports.FREE_RETRIES
end
function ____exports.payRetry(b)
b.retryTokens = math.max(0, b.retryTokens - 1)
end
function ____exports.mayHedge(b)
return b.hedgeTokens >= 1
end
function ____exports.payHedge(b)
b.hedgeTokens = b.hedgeTokens - 1
end
return ____exports
end,
["domain.scheduling.gradient"] = function(...) 
local ____lualib = require("lualib_bundle")
local __TS__ArraySetLength = ____lualib.__TS__ArraySetLength
local __TS__ArraySort = ____lualib.__TS__ArraySort
local ____exports = {}
local medianOf
function medianOf(values)
local sorted = __TS__ArraySort(
{unpack(values)},
function(____, a, b) return a - b end
)
local middle = math.floor(#sorted / 2)
return #sorted % 2 == 1 and sorted[middle + 1] or (sorted[middle] + sorted[middle + 1]) / 2
end
local SAMPLES = 12
local BASE_RISE = 0.01
local TOO_SLOW = 2
local LEAST_SHARE = 0.5
local LEAST_BASE_MS = 5
function ____exports.newGradient()
return {samples = {}, baseMs = 0, baseAtMs = 0}
end
function ____exports.gradientShare(g, tpotMs, nowMs)
local ____g_samples_0 = g.samples
____g_samples_0[#____g_samples_0 + 1] = tpotMs
if #g.samples < SAMPLES then
return nil
end
local currentMs = medianOf(g.samples)
__TS__ArraySetLength(g.samples, 0)
if g.baseMs == 0 then
g.baseMs = currentMs
end
local minutes = math.max(0, nowMs - g.baseAtMs) / 60000
g.baseMs = math.min(g.baseMs * (1 + BASE_RISE * (g.baseAtMs == 0 and 0 or minutes)), currentMs)
g.baseAtMs = nowMs
local boundMs = TOO_SLOW * math.max(g.baseMs, LEAST_BASE_MS)
local ____temp_1
if currentMs <= boundMs then
____temp_1 = nil
else
____temp_1 = math.max(LEAST_SHARE, boundMs / currentMs)
end
return ____temp_1
end
return ____exports
end,
["domain.tick-rules"] = function(...) 
local ____lualib = require("lualib_bundle")
local __TS__ObjectAssign = ____lualib.__TS__ObjectAssign
local ____exports = {}
local applyAccounts, noteEffect, answerWants, NO_GRANTS, NO_REFUSALS, NONE_APPLIED
local ____admission_2Ejs = require("domain.admission")
local admitAll = ____admission_2Ejs.admitAll
local ____leases_2Ejs = require("domain.leases")
local leaseEndMs = ____leases_2Ejs.leaseEndMs
local ____random_2Ejs = require("domain.random")
local seededRandom = ____random_2Ejs.seededRandom
local ____evacuation_2Ejs = require("domain.scheduling.evacuation")
local evacuationAgeMs = ____evacuation_2Ejs.evacuationAgeMs
local ____wake_2Ejs = require("domain.scheduling.wake")
local wokenBy = ____wake_2Ejs.wokenBy
local ____settlement_2Ejs = require("domain.settlement")
local hear = ____settlement_2Ejs.hear
local reclaimExpired = ____settlement_2Ejs.reclaimExpired
local settle = ____settlement_2Ejs.settle
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
for ____, s in ipairs(settles) do
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
for ____, v in ipairs(verdicts) do
applied[#applied + 1] = noteEffect(
state,
v.source,
hear(state, v, clock, random),
clock,
events,
released
)
end
for ____, leaseId in ipairs(renew) do
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
function ____exports.runTick(state, batch, clock)
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
return ____exports
end,
["domain.admission"] = function(...) 
local ____lualib = require("lualib_bundle")
local Map = ____lualib.Map
local __TS__New = ____lualib.__TS__New
local __TS__ArrayMap = ____lualib.__TS__ArrayMap
local __TS__ArraySplice = ____lualib.__TS__ArraySplice
local __TS__ObjectAssign = ____lualib.__TS__ObjectAssign
local __TS__ArrayFilter = ____lualib.__TS__ArrayFilter
local __TS__Iterator = ____lualib.__TS__Iterator
local ____exports = {}
local admitOne, admitLine, leaveLine, matchedChoice, grantOf, answerOf, keyOf, holdsBack, passesClass, decide, isHopeless, decideHedge, hasRoomForHedge, yieldMs, book, HEDGE_WAIT_MS, HEDGE_USED_SHARE, BUDGET_RECHECK_MS, YIELD_RECHECK_MS, LEAST_YIELD_MS
local ____grant_2Ejs = require("domain.grant")
local grantTo = ____grant_2Ejs.grantTo
local ____leases_2Ejs = require("domain.leases")
local leaseEndMs = ____leases_2Ejs.leaseEndMs
local ____refusal_2Ejs = require("domain.refusal")
local endsAnyTime = ____refusal_2Ejs.endsAnyTime
local passedOver = ____refusal_2Ejs.passedOver
local refuse = ____refusal_2Ejs.refuse
local refuseFor = ____refusal_2Ejs.refuseFor
local ____budgets_2Ejs = require("domain.scheduling.budgets")
local mayHedge = ____budgets_2Ejs.mayHedge
local mayRetry = ____budgets_2Ejs.mayRetry
local ____expected_2Dtime_2Ejs = require("domain.scheduling.expected-time")
local isMeasured = ____expected_2Dtime_2Ejs.isMeasured
local ____fairness_2Ejs = require("domain.scheduling.fairness")
local mustYield = ____fairness_2Ejs.mustYield
local noteWaiting = ____fairness_2Ejs.noteWaiting
local rankOf = ____fairness_2Ejs.rankOf
local visit = ____fairness_2Ejs.visit
local waitsForClass = ____fairness_2Ejs.waitsForClass
local ____in_2Dforce_2Ejs = require("domain.scheduling.in-force")
local rateInForce = ____in_2Dforce_2Ejs.rateInForce
local windowInForce = ____in_2Dforce_2Ejs.windowInForce
local ____line_2Ejs = require("domain.scheduling.line")
local firstOfLowerClass = ____line_2Ejs.firstOfLowerClass
local lowerClassIsDue = ____line_2Ejs.lowerClassIsDue
local noteClass = ____line_2Ejs.noteClass
local ____matching_2Ejs = require("domain.scheduling.matching")
local betterFitting = ____matching_2Ejs.betterFitting
local canMatchSizes = ____matching_2Ejs.canMatchSizes
local ____scope_2Dstate_2Ejs = require("domain.scope-state")
local keepFacts = ____scope_2Dstate_2Ejs.keepFacts
local ____selection_2Ejs = require("domain.selection")
local choose = ____selection_2Ejs.choose
local usualMs = ____selection_2Ejs.usualMs
local withoutFailedHere = ____selection_2Ejs.withoutFailedHere
local ____standing_2Ejs = require("domain.standing")
local standingOf = ____standing_2Ejs.standingOf
local standingsOf = ____standing_2Ejs.standingsOf
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
local lower = lowerClassIsDue(state) and not lowerWasRefused and firstOfLowerClass(line, wants) or -1
local at = math.max(0, lower)
local position = line[at + 1]
local want = wants[position + 1]
local answer = grantOf(desk, want) or answerOf(want, heldBack) or decide(desk, want)
if answer.kind ~= nil and lower > 0 then
lowerWasRefused = true
__continue10 = true
break
end
if answer.leaseId ~= nil then
if answer.kind ~= nil and holdsBack(answer, want) then
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
function holdsBack(____bindingPattern0, want)
local kind
kind = ____bindingPattern0.kind
return kind ~= "never" and kind ~= "deadline" and want.hedge ~= true
end
function passesClass(____bindingPattern0, want)
local clock
local ____self
local state
state = ____bindingPattern0.state
____self = ____bindingPattern0.self
clock = ____bindingPattern0.clock
return ____self ~= nil and lowerClassIsDue(state) and waitsForClass(state.workers, ____self, want.priority, clock.nowMs)
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
if want.retry == true and state.scheduling.retryBudget and not mayRetry(state.budgets, state.retriesInFlight) then
return refuseFor("fairness", want, BUDGET_RECHECK_MS, all)
end
local ____desk_5 = desk
local ____self = ____desk_5.self
if ____self ~= nil and mustYield(
state.workers,
____self,
want.priority,
lowerClassIsDue(state),
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
for ____, ____value in ipairs(standings) do
local source = ____value.source
local waitMs = ____value.waitMs
local reason = ____value.reason
if not isMeasured(source.health, clock.nowMs) then
return false
end
local leastMs = reason ~= nil and endsAnyTime(reason) and 0 or waitMs
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
if mayHedge(state.budgets) then
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
if not startable or probe or waitMs > HEDGE_WAIT_MS then
return false
end
local inflight = state.leases:inflightOf(source.config.name)
return inflight <= HEDGE_USED_SHARE * windowInForce(state, source, nowMs)
end
function yieldMs(____bindingPattern0, ____self)
local clock
local state
state = ____bindingPattern0.state
clock = ____bindingPattern0.clock
local ratePerS = 0
for ____, source in __TS__Iterator(state.sources:values()) do
ratePerS = ratePerS + rateInForce(state, source, clock.nowMs)
end
local rank = rankOf(state.workers, ____self, clock.nowMs)
local waitMs = (ratePerS == math.huge or ratePerS == 0) and 0 or rank * 1000 / ratePerS
return math.min(
YIELD_RECHECK_MS,
math.max(LEAST_YIELD_MS, waitMs)
)
end
function book(desk, want, ____bindingPattern0)
local considered
local all
local chosen
chosen = ____bindingPattern0.chosen
all = ____bindingPattern0.all
considered = ____bindingPattern0.considered
if desk.self ~= nil then
local ____desk_self_7, ____virtualTime_8 = desk.self, "virtualTime"
____desk_self_7[____virtualTime_8] = ____desk_self_7[____virtualTime_8] + 1
end
return grantTo(
desk.state,
want,
chosen,
passedOver(all, considered, chosen),
desk.clock
)
end
HEDGE_WAIT_MS = 50
HEDGE_USED_SHARE = 0.8
BUDGET_RECHECK_MS = 1000
YIELD_RECHECK_MS = 1000
LEAST_YIELD_MS = 100
function ____exports.admitAll(state, wants, worker, clock, random)
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
return ____exports
end,
["domain.grant"] = function(...) 
local ____exports = {}
local payFor, noteMeans, moved, dueMs, MEAN_ALPHA
local ____breaker_2Ejs = require("domain.breaker")
local startProbe = ____breaker_2Ejs.startProbe
local ____cooldown_2Ejs = require("domain.cooldown")
local noteGrant = ____cooldown_2Ejs.noteGrant
local ____gate_2Ejs = require("domain.gates.gate")
local takeFromGates = ____gate_2Ejs.takeFromGates
local ____leases_2Ejs = require("domain.leases")
local leaseEndMs = ____leases_2Ejs.leaseEndMs
local ____budgets_2Ejs = require("domain.scheduling.budgets")
local payHedge = ____budgets_2Ejs.payHedge
local payRetry = ____budgets_2Ejs.payRetry
local ____first_2Dtoken_2Ejs = require("domain.scheduling.first-token")
local firstTokenDueMs = ____first_2Dtoken_2Ejs.firstTokenDueMs
local hedgeAfterMs = ____first_2Dtoken_2Ejs.hedgeAfterMs
local ____pacer_2Ejs = require("domain.scheduling.pacer")
local notePacedGrant = ____pacer_2Ejs.notePacedGrant
local ____pool_2Ejs = require("domain.scheduling.pool")
local poolOf = ____pool_2Ejs.poolOf
local ____scope_2Dstate_2Ejs = require("domain.scope-state")
local forgetFacts = ____scope_2Dstate_2Ejs.forgetFacts
local ____selection_2Ejs = require("domain.selection")
local noteTurn = ____selection_2Ejs.noteTurn
local ____standing_2Ejs = require("domain.standing")
local estimatedTokens = ____standing_2Ejs.estimatedTokens
local isTokenLimited = ____standing_2Ejs.isTokenLimited
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
state.meanTokens = moved(state.meanTokens, estimate)
if want.promptTokens ~= nil then
state.meanPromptTokens = moved(state.meanPromptTokens, want.promptTokens)
end
end
function moved(mean, sample)
return mean == 0 and sample or mean + MEAN_ALPHA * (sample - mean)
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
MEAN_ALPHA = 0.05
function ____exports.grantTo(state, want, chosen, passed, clock)
local ____chosen_0 = chosen
local source = ____chosen_0.source
local probe = ____chosen_0.probe
local waitMs = ____chosen_0.waitMs
local ____want_1 = want
local leaseId = ____want_1.leaseId
local ____clock_2 = clock
local nowMs = ____clock_2.nowMs
local estimate = estimatedTokens(state, source, want)
local tokens = isTokenLimited(state, source) and estimate or 0
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
return ____exports
end,
["domain.leases"] = function(...) 
local ____exports = {}
function ____exports.leaseEndMs(nowMs, leaseTtlMs)
return math.ceil(nowMs + leaseTtlMs)
end
return ____exports
end,
["domain.scope-state"] = function(...) 
local ____lualib = require("lualib_bundle")
local Map = ____lualib.Map
local __TS__New = ____lualib.__TS__New
local __TS__Iterator = ____lualib.__TS__Iterator
local ____exports = {}
local forgetFactsOf
local ____breaker_2Ejs = require("domain.breaker")
local closedBreaker = ____breaker_2Ejs.closedBreaker
local ____cooldown_2Ejs = require("domain.cooldown")
local noCooldown = ____cooldown_2Ejs.noCooldown
local ____gate_2Ejs = require("domain.gates.gate")
local emptyGateRecord = ____gate_2Ejs.emptyGateRecord
local gateRules = ____gate_2Ejs.gateRules
local ____budgets_2Ejs = require("domain.scheduling.budgets")
local newBudgets = ____budgets_2Ejs.newBudgets
local ____evidence_2Ejs = require("domain.scheduling.evidence")
local noEvidence = ____evidence_2Ejs.noEvidence
local ____gradient_2Ejs = require("domain.scheduling.gradient")
local newGradient = ____gradient_2Ejs.newGradient
local ____health_2Ejs = require("domain.scheduling.health")
local newHealth = ____health_2Ejs.newHealth
local ____pacer_2Ejs = require("domain.scheduling.pacer")
local lowerLimit = ____pacer_2Ejs.lowerLimit
local newPacer = ____pacer_2Ejs.newPacer
local ____token_2Dlearning_2Ejs = require("domain.scheduling.token-learning")
local newTokenBook = ____token_2Dlearning_2Ejs.newTokenBook
function forgetFactsOf(source)
source.facts = nil
source.standing = nil
source.score = nil
end
function ____exports.newSourceRecord(nowMs)
return {
gates = emptyGateRecord(),
breaker = closedBreaker(nowMs),
cooldown = noCooldown(),
pacer = newPacer(),
gradient = newGradient(),
evidence = noEvidence(),
health = newHealth(),
reclosedAtMs = -math.huge,
turns = 0,
lastGrant = 0,
lastError = nil
}
end
function ____exports.newScopeState(setup, nowMs, leases, bookOf, recordOf)
if bookOf == nil then
bookOf = newTokenBook
end
if recordOf == nil then
recordOf = function() return ____exports.newSourceRecord(nowMs) end
end
local sources = __TS__New(Map)
local models = __TS__New(Map)
for ____, config in ipairs(setup.sources) do
local name = config.name
local model = config.model
local sizes = models:get(model) or ({
book = bookOf(model),
want = nil,
tokens = 0
})
models:set(model, sizes)
local record = recordOf(name)
local ____sources_set_15 = sources.set
local ____name_14 = name
local ____config_2 = config
local ____gateRules_result_3 = gateRules(config)
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
____sources_set_15(sources, ____name_14, {
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
})
end
return {
sources = sources,
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
lastProgressMs = -math.huge
}
end
function ____exports.keepFacts(state)
state.keepsFacts = true
state.lineup = nil
for ____, source in __TS__Iterator(state.sources:values()) do
forgetFactsOf(source)
source.sizes.want = nil
end
end
function ____exports.forgetFacts(state, source)
local ____state_16 = state
local lineup = ____state_16.lineup
local ____state_globalRules_limits_17 = state.globalRules.limits
local maxConcurrency = ____state_globalRules_limits_17.maxConcurrency
local rpm = ____state_globalRules_limits_17.rpm
local tpm = ____state_globalRules_limits_17.tpm
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
for ____, other in __TS__Iterator(state.sources:values()) do
other.facts = nil
other.standing = nil
end
end
return ____exports
end,
["domain.selection"] = function(...) 
local ____lualib = require("lualib_bundle")
local __TS__ArrayIncludes = ____lualib.__TS__ArrayIncludes
local __TS__ArrayFilter = ____lualib.__TS__ArrayFilter
local __TS__ArraySome = ____lualib.__TS__ArraySome
local ____exports = {}
local isPlain, chooseFromLineup, isBetter, scoreOf, demotionOf, steadyScore, steadyScoreNow, expectedMs, UNLIMITED_CAPACITY, LIMITED_HERE_FACTOR, NOISE
local ____lineup_2Ejs = require("domain.lineup")
local scoreFor = ____lineup_2Ejs.scoreFor
local ____random_2Ejs = require("domain.random")
local jittered = ____random_2Ejs.jittered
local ____expected_2Dtime_2Ejs = require("domain.scheduling.expected-time")
local attemptTimeMs = ____expected_2Dtime_2Ejs.attemptTimeMs
local successTimeMs = ____expected_2Dtime_2Ejs.successTimeMs
local ____health_2Ejs = require("domain.scheduling.health")
local successShare = ____health_2Ejs.successShare
local ____in_2Dforce_2Ejs = require("domain.scheduling.in-force")
local windowInForce = ____in_2Dforce_2Ejs.windowInForce
local ____pool_2Ejs = require("domain.scheduling.pool")
local poolOf = ____pool_2Ejs.poolOf
local ____token_2Dlearning_2Ejs = require("domain.scheduling.token-learning")
local learnedOutTokens = ____token_2Dlearning_2Ejs.learnedOutTokens
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
local bestRank = math.huge
local bestScore = 0
local at = -1
for ____, standing in ipairs(standings) do
do
local __continue18
repeat
at = at + 1
local rank = standing.rank
if not standing.startable or rank > bestRank then
__continue18 = true
break
end
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
local score = jittered(steady, NOISE, random)
if best ~= nil and rank == bestRank and (score > bestScore or not isBetter(standing, score, best, bestScore)) then
__continue18 = true
break
end
best = standing
bestRank = rank
bestScore = score
__continue18 = true
until true
if not __continue18 then
break
end
end
end
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
NOISE,
random
)
end
local ____source_5 = source
local config = ____source_5.config
if state.selector == "round_robin" then
return math.max(source.turns, state.turnFloor) * demotion
end
local busy = state.leases:inflightOf(config.name)
local capacity = config.maxConcurrency > 0 and config.maxConcurrency or UNLIMITED_CAPACITY
return (busy + 1) / (capacity * config.weight) * demotion
end
function demotionOf(source, ____bindingPattern0)
local limitedHere
limitedHere = ____bindingPattern0.limitedHere
return #limitedHere > 0 and __TS__ArrayIncludes(limitedHere, source.config.name) and LIMITED_HERE_FACTOR or 1
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
local capacity = window == math.huge and UNLIMITED_CAPACITY or window
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
____temp_7 = math.min(learned, want.maxTokens or math.huge)
end
local outTokens = ____temp_7
return attemptTimeMs(
source.health,
poolOf(state, nowMs),
outTokens
)
end
UNLIMITED_CAPACITY = 32
LIMITED_HERE_FACTOR = 4
local FAILED_HERE_PATIENCE_MS = 30001
local AFFINITY_TOLERANCE = 1.5
NOISE = 0.02
function ____exports.withoutFailedHere(standings, want)
if #want.failedHere == 0 then
return standings
end
local untried = __TS__ArrayFilter(
standings,
function(____, s) return not __TS__ArrayIncludes(want.failedHere, s.source.config.name) end
)
local able = __TS__ArraySome(
untried,
function(____, s) return s.source.breaker.state == "closed" and s.waitMs <= FAILED_HERE_PATIENCE_MS end
)
return able and untried or standings
end
function ____exports.choose(state, standings, want, nowMs, random)
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
for ____, standing in ipairs(standings) do
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
return ownScore <= AFFINITY_TOLERANCE * bestScore and own or best
end
function ____exports.usualMs(state, source, want, nowMs)
local isKnown = learnedOutTokens(source.sizes.book, want.tag or "") ~= nil
return isKnown and source.health.tpotMs > 0 and expectedMs(state, source, want, nowMs) or source.health.durationMs
end
function ____exports.noteTurn(state, ____bindingPattern0)
local source
source = ____bindingPattern0.source
local start = math.max(source.turns, state.turnFloor)
state.turnFloor = start
source.turns = start + 1 / source.config.weight
state.grantCount = state.grantCount + 1
source.lastGrant = state.grantCount
end
return ____exports
end,
["domain.scheduling.expected-time"] = function(...) 
local ____exports = {}
local UNKNOWN_TTFT_MS = 1000
local UNKNOWN_OUT_TOKENS = 256
function ____exports.attemptTimeMs(h, pool, outTokens)
local poolTtftMs = pool.ttftMs > 0 and pool.ttftMs or UNKNOWN_TTFT_MS
local ttftMs = h.ttftMs > 0 and h.ttftMs or poolTtftMs
local tpotMs = h.tpotMs > 0 and h.tpotMs or pool.tpotMs
return ttftMs + (outTokens or UNKNOWN_OUT_TOKENS) * tpotMs
end
local LEAST_SAMPLES = 10
local FRESH_MS = 30000
function ____exports.isMeasured(h, nowMs)
return h.samples >= LEAST_SAMPLES and nowMs - h.lastSuccessMs <= FRESH_MS
end
function ____exports.successTimeMs(h, good, timeMs, waitMs)
return timeMs + (1 - good) / good * math.max(h.failMs, timeMs) + waitMs
end
return ____exports
end,
["domain.scheduling.fairness"] = function(...) 
local ____lualib = require("lualib_bundle")
local Map = ____lualib.Map
local __TS__Iterator = ____lualib.__TS__Iterator
local __TS__Spread = ____lualib.__TS__Spread
local ____exports = {}
local greatest, leastWaiting, isWaiting, goesFirst, forgetSilent, SILENT_MS, FORGET_MS
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
if other == ____self or not isWaiting(other, nowMs) then
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
function isWaiting(worker, nowMs)
return worker.waiting and nowMs - worker.lastVisitMs <= SILENT_MS
end
function goesFirst(a, b, isLowerTurn)
if a.priority ~= b.priority then
return a.priority < b.priority ~= isLowerTurn
end
return a.virtualTime < b.virtualTime
end
function forgetSilent(book, nowMs)
for ____, ____value in ipairs({__TS__Spread(book)}) do
local name = ____value[1]
local worker = ____value[2]
if nowMs - worker.lastVisitMs > FORGET_MS then
book:delete(name)
end
end
end
____exports.LEAD = 4
SILENT_MS = 1500
FORGET_MS = 15000
function ____exports.visit(book, name, nowMs)
local worker = book:get(name)
if worker == nil then
forgetSilent(book, nowMs)
worker = {virtualTime = 0, waiting = false, priority = 0, lastVisitMs = nowMs}
book:set(name, worker)
end
if not worker.waiting and book.size > 1 then
local presentTime = leastWaiting(book, worker, nowMs) or greatest(book)
worker.virtualTime = math.max(worker.virtualTime, presentTime)
end
worker.lastVisitMs = nowMs
return worker
end
function ____exports.mustYield(book, ____self, priority, isLowerTurn, nowMs)
if book.size == 1 then
return false
end
for ____, other in __TS__Iterator(book:values()) do
do
local __continue17
repeat
if other == ____self or not isWaiting(other, nowMs) then
__continue17 = true
break
end
if other.priority < priority and not isLowerTurn then
return true
end
if other.priority == priority and ____self.virtualTime > other.virtualTime + ____exports.LEAD then
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
function ____exports.waitsForClass(book, ____self, priority, nowMs)
if book.size == 1 then
return false
end
for ____, other in __TS__Iterator(book:values()) do
if other ~= ____self and isWaiting(other, nowMs) and other.priority < priority then
return true
end
end
return false
end
function ____exports.noteWaiting(____self, wants, answers)
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
____self.priority = ____self.waiting and math.min(____self.priority, priority) or priority
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
function ____exports.rankOf(book, ____self, nowMs)
local rank = 0
for ____, other in __TS__Iterator(book:values()) do
if other ~= ____self and isWaiting(other, nowMs) and other.virtualTime < ____self.virtualTime then
rank = rank + 1
end
end
return rank
end
function ____exports.nextInLine(book, ____self, isLowerTurn, nowMs)
local name = nil
local best = nil
for ____, ____value in __TS__Iterator(book) do
local candidate = ____value[1]
local worker = ____value[2]
do
local __continue37
repeat
if worker == ____self or not isWaiting(worker, nowMs) then
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
return ____exports
end,
["domain.scheduling.line"] = function(...) 
local ____lualib = require("lualib_bundle")
local __TS__ArrayFindIndex = ____lualib.__TS__ArrayFindIndex
local ____exports = {}
local UPPER_GRANTS = 9
function ____exports.lowerClassIsDue(state)
return state.grantsOfUpperClass >= UPPER_GRANTS
end
function ____exports.firstOfLowerClass(line, wants)
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
function ____exports.noteClass(state, line, wants, granted, isLowerTurn)
if isLowerTurn then
state.grantsOfUpperClass = 0
elseif wants[line[#line] + 1].priority > granted.priority then
state.grantsOfUpperClass = state.grantsOfUpperClass + 1
end
end
return ____exports
end,
["domain.scheduling.matching"] = function(...) 
local ____lualib = require("lualib_bundle")
local __TS__Iterator = ____lualib.__TS__Iterator
local __TS__ArrayIncludes = ____lualib.__TS__ArrayIncludes
local ____exports = {}
local sizeOf, standingFor
local ____standing_2Ejs = require("domain.standing")
local estimatedTokens = ____standing_2Ejs.estimatedTokens
local standingOf = ____standing_2Ejs.standingOf
local ____budgets_2Ejs = require("domain.scheduling.budgets")
local mayRetry = ____budgets_2Ejs.mayRetry
local ____in_2Dforce_2Ejs = require("domain.scheduling.in-force")
local rateInForce = ____in_2Dforce_2Ejs.rateInForce
local tokensInForce = ____in_2Dforce_2Ejs.tokensInForce
local ____size_2Dmatch_2Ejs = require("domain.scheduling.size-match")
local fitsBetter = ____size_2Dmatch_2Ejs.fitsBetter
local isTwoSided = ____size_2Dmatch_2Ejs.isTwoSided
local LOOK_AHEAD = ____size_2Dmatch_2Ejs.LOOK_AHEAD
local MOST_SKIPS = ____size_2Dmatch_2Ejs.MOST_SKIPS
local matchingSize = ____size_2Dmatch_2Ejs.matchingSize
local mismatch = ____size_2Dmatch_2Ejs.mismatch
function sizeOf(state, source, nowMs)
return matchingSize(
tokensInForce(source),
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
if want.retry == true and state.scheduling.retryBudget and not mayRetry(state.budgets, state.retriesInFlight) then
return nil
end
local standing = standingOf(state, source, want, clock)
return standing.startable and standing or nil
end
function ____exports.canMatchSizes(state, nowMs)
if not state.scheduling.sizeMatching or state.meanTokens == 0 then
return false
end
local sizes = {}
for ____, source in __TS__Iterator(state.sources:values()) do
if source.breaker.state == "closed" then
sizes[#sizes + 1] = sizeOf(state, source, nowMs)
end
end
return isTwoSided(sizes, state.meanTokens)
end
function ____exports.betterFitting(state, source, line, from, wants, clock)
local size = sizeOf(state, source, clock.nowMs)
if size == 0 then
return nil
end
local head = wants[line[from + 1] + 1]
if (head.skips or 0) >= MOST_SKIPS or head.ordered == true then
return nil
end
local best = mismatch(
estimatedTokens(state, source, head),
size
)
local found = nil
do
local at = from + 1
while at < #line and at < from + LOOK_AHEAD do
do
local __continue12
repeat
local want = wants[line[at + 1] + 1]
if want.priority ~= head.priority then
break
end
local isOverdue = (want.skips or 0) >= MOST_SKIPS
local badness = mismatch(
estimatedTokens(state, source, want),
size
)
if not isOverdue and not fitsBetter(best, badness) then
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
return ____exports
end,
["domain.scheduling.size-match"] = function(...) 
local ____exports = {}
____exports.LOOK_AHEAD = 8
____exports.MOST_SKIPS = 24
local LEAST_GAIN = 1.0512710963760241
function ____exports.matchingSize(tokensPerMinute, requestsPerS)
if tokensPerMinute <= 0 or requestsPerS <= 0 or requestsPerS == math.huge then
return 0
end
return tokensPerMinute / 60 / requestsPerS
end
function ____exports.isTwoSided(sizes, meanTokens)
local below = false
local above = false
for ____, size in ipairs(sizes) do
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
function ____exports.mismatch(tokens, size)
local ratio = math.max(1, tokens) / size
return ratio < 1 and 1 / ratio or ratio
end
function ____exports.fitsBetter(mismatchFirst, mismatchSecond)
return mismatchSecond * LEAST_GAIN < mismatchFirst
end
return ____exports
end,
["domain.scheduling.evacuation"] = function(...) 
local ____exports = {}
local ____first_2Dtoken_2Ejs = require("domain.scheduling.first-token")
local firstTokenDueMs = ____first_2Dtoken_2Ejs.firstTokenDueMs
local ____pool_2Ejs = require("domain.scheduling.pool")
local poolOf = ____pool_2Ejs.poolOf
function ____exports.evacuationAgeMs(state, name, nowMs)
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
return ____exports
end,
["domain.scheduling.wake"] = function(...) 
local ____lualib = require("lualib_bundle")
local __TS__ArrayFind = ____lualib.__TS__ArrayFind
local ____exports = {}
local ____standing_2Ejs = require("domain.standing")
local hasRoomNow = ____standing_2Ejs.hasRoomNow
local ____fairness_2Ejs = require("domain.scheduling.fairness")
local nextInLine = ____fairness_2Ejs.nextInLine
local ____line_2Ejs = require("domain.scheduling.line")
local lowerClassIsDue = ____line_2Ejs.lowerClassIsDue
function ____exports.wokenBy(state, released, worker, clock)
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
lowerClassIsDue(state),
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
return ____exports
end,
["keys"] = function(...) 
local ____lualib = require("lualib_bundle")
local __TS__Iterator = ____lualib.__TS__Iterator
local __TS__ArrayMap = ____lualib.__TS__ArrayMap
local ____exports = {}
local ____layout_2Ejs = require("layout")
local LAYOUT_VERSION = ____layout_2Ejs.LAYOUT_VERSION
____exports.STATE_KEY = "s" .. tostring(LAYOUT_VERSION)
____exports.GRANTS_KEY = "g" .. tostring(LAYOUT_VERSION)
____exports.LEASES_KEY = "l"
____exports.WORKERS_KEY = "w"
____exports.SIZES_KEY = "est"
____exports.SCOPE_FIELD = "*"
____exports.CLOCK_FIELD = "@"
____exports.LIMITS_FIELD = "~"
____exports.LIMITS_ID_FIELD = "~~"
function ____exports.sourceLeasesKey(source)
return (____exports.LEASES_KEY .. ":") .. source
end
function ____exports.scopeKeys(prefix, sources)
local keys = {
____exports.STATE_KEY,
____exports.LEASES_KEY,
____exports.GRANTS_KEY,
____exports.WORKERS_KEY,
____exports.SIZES_KEY
}
for ____, source in __TS__Iterator(sources) do
keys[#keys + 1] = ____exports.sourceLeasesKey(source)
end
return __TS__ArrayMap(
keys,
function(____, name) return prefix .. name end
)
end
return ____exports
end,
["layout"] = function(...) 
local ____lualib = require("lualib_bundle")
local __TS__ArrayPush = ____lualib.__TS__ArrayPush
local ____exports = {}
____exports.LAYOUT_VERSION = 2
function ____exports.flattenSource(source)
local ____source_0 = source
local gates = ____source_0.gates
local breaker = ____source_0.breaker
local cooldown = ____source_0.cooldown
local pacer = ____source_0.pacer
local gradient = ____source_0.gradient
local evidence = ____source_0.evidence
local health = ____source_0.health
local ____breaker_1 = breaker
local stretches = ____breaker_1.stretches
local ____pacer_2 = pacer
local window = ____pacer_2.window
local rate = ____pacer_2.rate
local windowNoise = ____pacer_2.windowNoise
local rateNoise = ____pacer_2.rateNoise
local goodput = ____pacer_2.goodput
local values = {
____exports.LAYOUT_VERSION,
gates.windowId,
gates.windowRequests,
gates.windowTokens,
gates.requestTatMs,
gates.tokenTatMs,
gates.newestGrant,
breaker.state,
breaker.epoch,
breaker.openUntilMs,
breaker.trips,
breaker.closedAtMs,
breaker.consecutiveFailures,
breaker.dead,
breaker.deadInARow,
breaker.probeLease,
breaker.probesLeft,
stretches.ids,
stretches.successes,
stretches.failures,
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
rateNoise.heardAtMs,
goodput.weight,
goodput.atMs,
goodput.firstAtMs,
goodput.bestPerS,
goodput.bestAtMs,
goodput.granted,
goodput.refused,
pacer.attemptMs,
pacer.startWindow,
pacer.rateTatMs,
pacer.rateToleranceMs,
pacer.learnedRpm,
pacer.learnedTpm,
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
evidence.hangs,
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
function ____exports.restoredSource(v)
return {
gates = {
windowId = v[2],
windowRequests = v[3],
windowTokens = v[4],
requestTatMs = v[5],
tokenTatMs = v[6],
newestGrant = v[7]
},
breaker = {
state = v[8],
epoch = v[9],
openUntilMs = v[10],
trips = v[11],
closedAtMs = v[12],
consecutiveFailures = v[13],
dead = v[14],
deadInARow = v[15],
probeLease = v[16],
probesLeft = v[17],
stretches = {ids = v[18], successes = v[19], failures = v[20]}
},
cooldown = {coolUntilMs = v[21], limitedInARow = v[22], limitedAtMs = v[23], nextGrantMs = v[24]},
pacer = {
window = {wMax = v[25], cutAtMs = v[26], kMs = v[27]},
rate = {wMax = v[28], cutAtMs = v[29], kMs = v[30]},
windowNoise = {
vainCuts = v[31],
rareCuts = v[32],
fullLevel = v[33],
attempts = v[34],
refusals = v[35],
usualGap = v[36],
heardAttempts = v[37],
heardAtMs = v[38]
},
rateNoise = {
vainCuts = v[39],
rareCuts = v[40],
fullLevel = v[41],
attempts = v[42],
refusals = v[43],
usualGap = v[44],
heardAttempts = v[45],
heardAtMs = v[46]
},
goodput = {
weight = v[47],
atMs = v[48],
firstAtMs = v[49],
bestPerS = v[50],
bestAtMs = v[51],
granted = v[52],
refused = v[53]
},
attemptMs = v[54],
startWindow = v[55],
rateTatMs = v[56],
rateToleranceMs = v[57],
learnedRpm = v[58],
learnedTpm = v[59],
firstAdmittedMs = v[60],
admitted = v[61],
bucket = v[62],
bucketCount = v[63],
earlierCount = v[64]
},
gradient = {samples = v[65], baseMs = v[66], baseAtMs = v[67]},
evidence = {score = v[68], atMs = v[69], fails = v[70], hangs = v[71]},
health = {
successes = v[72],
failures = v[73],
atMs = v[74],
ttftMs = v[75],
tpotMs = v[76],
failMs = v[77],
durationMs = v[78],
samples = v[79],
lastSuccessMs = v[80]
},
reclosedAtMs = v[81],
turns = v[82],
lastGrant = v[83],
lastError = #v > 83 and ({code = v[84], message = v[85]}) or nil
}
end
function ____exports.flattenScope(state)
local ____state_3 = state
local globalGates = ____state_3.globalGates
local pool = ____state_3.pool
local values = {
____exports.LAYOUT_VERSION,
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
function ____exports.progressOf(v)
return v[10]
end
function ____exports.restoreScope(state, v)
state.budgets.retryTokens = v[2]
state.budgets.hedgeTokens = v[3]
state.retriesInFlight = v[4]
state.meanTokens = v[5]
state.meanPromptTokens = v[6]
state.grantsOfUpperClass = v[7]
state.turnFloor = v[8]
state.grantCount = v[9]
state.lastProgressMs = ____exports.progressOf(v)
local ____state_4 = state
local globalGates = ____state_4.globalGates
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
return ____exports
end,
["repair"] = function(...) 
local ____lualib = require("lualib_bundle")
local __TS__ArrayMap = ____lualib.__TS__ArrayMap
local __TS__ArrayConcat = ____lualib.__TS__ArrayConcat
local __TS__New = ____lualib.__TS__New
local __TS__ArrayEvery = ____lualib.__TS__ArrayEvery
local __TS__NumberIsNaN = ____lualib.__TS__NumberIsNaN
local ____exports = {}
local dropOtherType, dropFields, unpacked, stateCheck, isPacked, isAlike, isLike, startsLike, reviseLeases, SIZE_TYPES, MOST_MORE
local ____leases_2Ejs = require("domain.leases")
local leaseEndMs = ____leases_2Ejs.leaseEndMs
local ____scope_2Dstate_2Ejs = require("domain.scope-state")
local newScopeState = ____scope_2Dstate_2Ejs.newScopeState
local ____common_2Dlimits_2Ejs = require("common-limits")
local areLimits = ____common_2Dlimits_2Ejs.areLimits
local ____keys_2Ejs = require("keys")
local CLOCK_FIELD = ____keys_2Ejs.CLOCK_FIELD
local GRANTS_KEY = ____keys_2Ejs.GRANTS_KEY
local LEASES_KEY = ____keys_2Ejs.LEASES_KEY
local LIMITS_FIELD = ____keys_2Ejs.LIMITS_FIELD
local LIMITS_ID_FIELD = ____keys_2Ejs.LIMITS_ID_FIELD
local SCOPE_FIELD = ____keys_2Ejs.SCOPE_FIELD
local SIZES_KEY = ____keys_2Ejs.SIZES_KEY
local STATE_KEY = ____keys_2Ejs.STATE_KEY
local sourceLeasesKey = ____keys_2Ejs.sourceLeasesKey
local WORKERS_KEY = ____keys_2Ejs.WORKERS_KEY
local ____layout_2Ejs = require("layout")
local flattenScope = ____layout_2Ejs.flattenScope
local flattenSource = ____layout_2Ejs.flattenSource
local LAYOUT_VERSION = ____layout_2Ejs.LAYOUT_VERSION
local ____lease_2Dlayout_2Ejs = require("lease-layout")
local LEASE_TYPES = ____lease_2Dlayout_2Ejs.LEASE_TYPES
local ____lease_2Dstore_2Ejs = require("lease-store")
local LeaseStore = ____lease_2Dstore_2Ejs.LeaseStore
local packedLease = ____lease_2Dstore_2Ejs.packedLease
local score = ____lease_2Dstore_2Ejs.score
local unpackedLease = ____lease_2Dstore_2Ejs.unpackedLease
local ____scope_2Dclock_2Ejs = require("scope-clock")
local scopeClock = ____scope_2Dclock_2Ejs.scopeClock
local ____size_2Dstore_2Ejs = require("size-store")
local SizeStore = ____size_2Dstore_2Ejs.SizeStore
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
if isGood(
stored[at + 1],
unpacked(stored[at + 1 + 1])
) then
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
function stateCheck(setup, nowMs, leases)
local sizes = __TS__New(SizeStore, "")
local state = newScopeState(
setup,
nowMs,
leases,
function(model) return sizes:bookOf(model) end
)
return function(field, values)
if field == CLOCK_FIELD then
return true
end
if field == LIMITS_ID_FIELD then
return isLike(values, {"string", "number"})
end
if field == LIMITS_FIELD then
return areLimits(values)
end
if field == SCOPE_FIELD then
return isPacked(
values,
flattenScope(state)
)
end
local source = state.sources:get(field)
return source == nil or isPacked(
values,
flattenSource(source)
)
end
end
function isPacked(values, example)
if type(values) ~= "table" then
return false
end
local packed = values
local more = #packed - #example
if packed[1] ~= LAYOUT_VERSION or more < 0 or more > MOST_MORE then
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
function(____, item) return type(item) == "number" and not __TS__NumberIsNaN(item) end
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
if type(value) ~= types[at + 1] or __TS__NumberIsNaN(value) then
return false
end
at = at + 1
end
end
return true
end
function reviseLeases(prefix, names, leaseTtlMs, nowMs, ttlMs)
local all = prefix .. LEASES_KEY
local grants = prefix .. GRANTS_KEY
local latest = score(leaseEndMs(nowMs, leaseTtlMs))
local revised = 0
for ____, key in ipairs(__TS__ArrayConcat(
{all},
__TS__ArrayMap(
names,
function(____, name) return prefix .. sourceLeasesKey(name) end
)
)) do
for ____, leaseId in ipairs(redis.call("ZRANGEBYSCORE", key, "(" .. latest, "+inf")) do
redis.call("ZADD", key, latest, leaseId)
revised = revised + 1
end
end
local stored = redis.call("HGETALL", grants)
do
local at = 0
while at < #stored do
do
local __continue47
repeat
local leaseId = stored[at + 1]
local lease = unpackedLease(leaseId, stored[at + 1 + 1])
if lease == nil then
__continue47 = true
break
end
local latestMs = leaseEndMs(nowMs, lease.grant.leaseTtlMs)
if lease.expiresAtMs > latestMs then
lease.expiresAtMs = latestMs
redis.call(
"HSET",
grants,
leaseId,
packedLease(lease)
)
revised = revised + 1
end
local own = prefix .. sourceLeasesKey(lease.grant.source)
for ____, key in ipairs({all, own}) do
redis.call(
"ZADD",
key,
score(lease.expiresAtMs),
leaseId
)
redis.call("PEXPIRE", key, ttlMs)
end
__continue47 = true
until true
if not __continue47 then
break
end
end
at = at + 2
end
end
return revised
end
function ____exports.repair(prefix, setup, server, ttlMs)
local names = __TS__ArrayMap(
setup.sources,
function(____, ____bindingPattern0)
local name
name = ____bindingPattern0.name
return name
end
)
local dropped = 0
for ____, key in ipairs({STATE_KEY, GRANTS_KEY, WORKERS_KEY, SIZES_KEY}) do
dropped = dropped + dropOtherType(prefix .. key, "hash")
end
for ____, key in ipairs(__TS__ArrayConcat(
{LEASES_KEY},
__TS__ArrayMap(
names,
function(____, name) return sourceLeasesKey(name) end
)
)) do
dropped = dropped + dropOtherType(prefix .. key, "zset")
end
local clock = redis.call("HGET", prefix .. STATE_KEY, CLOCK_FIELD)
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
prefix .. WORKERS_KEY,
function(_, values) return isLike(values, {"number", "boolean", "number", "number"}) end
)
dropped = dropped + dropFields(
prefix .. SIZES_KEY,
function(_, values) return isLike(values, SIZE_TYPES) end
)
dropped = dropped + dropFields(
prefix .. GRANTS_KEY,
function(_, values) return isLike(values, LEASE_TYPES) end
)
return dropped + reviseLeases(
prefix,
names,
setup.leaseTtlMs,
nowMs,
ttlMs
)
end
SIZE_TYPES = {
"number",
"number",
"number",
"number",
"number"
}
MOST_MORE = 4
return ____exports
end,
["common-limits"] = function(...) 
local ____lualib = require("lualib_bundle")
local __TS__ObjectAssign = ____lualib.__TS__ObjectAssign
local __TS__ArrayMap = ____lualib.__TS__ArrayMap
local __TS__ArraySome = ____lualib.__TS__ArraySome
local ____exports = {}
local knownOf, lower, hasOthers, DIMENSIONS
local ____pacer_2Ejs = require("domain.scheduling.pacer")
local lowerLimit = ____pacer_2Ejs.lowerLimit
local ____keys_2Ejs = require("keys")
local LIMITS_FIELD = ____keys_2Ejs.LIMITS_FIELD
local LIMITS_ID_FIELD = ____keys_2Ejs.LIMITS_ID_FIELD
local SCOPE_FIELD = ____keys_2Ejs.SCOPE_FIELD
function knownOf(packed, nowMs)
local known = packed == nil and ({}) or cmsgpack.unpack(packed)
local valid = {}
for name in pairs(known) do
local limits = known[name]
for ____, dimension in ipairs(DIMENSIONS) do
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
for ____, dimension in ipairs(DIMENSIONS) do
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
for ____, dimension in ipairs(DIMENSIONS) do
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
function ____exports.commonLimits(setup, stored, nowMs)
local ____setup_0 = setup
local limitsId = ____setup_0.limitsId
local leaseTtlMs = ____setup_0.leaseTtlMs
local text = stored[LIMITS_ID_FIELD]
local latestId, toldAtMs = unpack(
text == nil and ({"", 0}) or cmsgpack.unpack(text),
1,
2
)
if latestId == limitsId and nowMs - toldAtMs < leaseTtlMs / 3 then
return {setup = setup, changed = NOTHING_NEW}
end
local known = latestId == limitsId and ({}) or knownOf(stored[LIMITS_FIELD], nowMs)
local lowered = __TS__ObjectAssign(
{},
setup,
{global = lower(known, SCOPE_FIELD, setup.global, nowMs + leaseTtlMs)}
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
LIMITS_ID_FIELD,
cmsgpack.pack({id, nowMs}),
LIMITS_FIELD,
cmsgpack.pack(known)
}
return {
setup = __TS__ObjectAssign({}, lowered, {sources = sources}),
changed = changed
}
end
function ____exports.areLimits(value)
if type(value) ~= "table" then
return false
end
for name in pairs(value) do
local limits = value[name]
if type(limits) ~= "table" then
return false
end
for ____, dimension in ipairs(DIMENSIONS) do
local entry = limits[dimension]
if type(entry) ~= "table" or type(entry[1]) ~= "number" or type(entry[2]) ~= "number" then
return false
end
end
end
return true
end
return ____exports
end,
["lease-layout"] = function(...) 
local ____exports = {}
local orNull
local ____layout_2Ejs = require("layout")
local LAYOUT_VERSION = ____layout_2Ejs.LAYOUT_VERSION
function orNull(value)
local ____temp_1
if value == false then
____temp_1 = nil
else
____temp_1 = value
end
return ____temp_1
end
____exports.LEASE_TYPES = {
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
function ____exports.flattenLease(lease)
local ____lease_0 = lease
local grant = ____lease_0.grant
local windowId = grant.windowId or false
local globalWindowId = lease.globalWindowId or false
local firstTokenDueMs = grant.firstTokenDueMs or false
local hedgeAfterMs = grant.hedgeAfterMs or false
local promptTokens = lease.promptTokens or false
return {
LAYOUT_VERSION,
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
function ____exports.restoreLease(leaseId, v)
if v[1] ~= LAYOUT_VERSION then
return nil
end
return {
grant = {
leaseId = leaseId,
source = v[2],
epoch = v[3],
probe = v[4],
reservedTokens = v[5],
leaseTtlMs = v[6],
startInMs = v[7],
passedOver = v[15],
windowId = orNull(v[16]),
firstTokenDueMs = orNull(v[18]),
hedgeAfterMs = orNull(v[19])
},
expiresAtMs = v[8],
startedAtMs = v[9],
inflight = v[10],
ttftMs = v[11],
tag = v[12],
retry = v[13],
overdue = v[14],
globalWindowId = orNull(v[17]),
promptTokens = orNull(v[20]) or nil
}
end
return ____exports
end,
["lease-store"] = function(...) 
local ____lualib = require("lualib_bundle")
local __TS__Class = ____lualib.__TS__Class
local __TS__ArraySlice = ____lualib.__TS__ArraySlice
local ____exports = {}
local listOf, MOST_ARGUMENTS
local ____keys_2Ejs = require("keys")
local GRANTS_KEY = ____keys_2Ejs.GRANTS_KEY
local LEASES_KEY = ____keys_2Ejs.LEASES_KEY
local sourceLeasesKey = ____keys_2Ejs.sourceLeasesKey
local ____lease_2Dlayout_2Ejs = require("lease-layout")
local flattenLease = ____lease_2Dlayout_2Ejs.flattenLease
local restoreLease = ____lease_2Dlayout_2Ejs.restoreLease
function listOf(lists, name)
if lists[name] == nil then
lists[name] = {}
end
return lists[name]
end
function ____exports.inParts(list, use)
if #list == 0 then
return
end
if #list <= MOST_ARGUMENTS then
use(list)
return
end
do
local from = 0
while from < #list do
use(__TS__ArraySlice(list, from, from + MOST_ARGUMENTS))
from = from + MOST_ARGUMENTS
end
end
end
function ____exports.packedLease(lease)
return cmsgpack.pack(flattenLease(lease))
end
function ____exports.unpackedLease(leaseId, packed)
return restoreLease(
leaseId,
cmsgpack.unpack(packed)
)
end
function ____exports.score(moment)
return string.format("%.17g", moment)
end
local MOST_RECLAIMED = 256
____exports.LeaseStore = __TS__Class()
local LeaseStore = ____exports.LeaseStore
LeaseStore.name = "LeaseStore"
function LeaseStore.prototype.____constructor(self, prefix, nowMs, sources)
self.prefix = prefix
self.nowMs = nowMs
self.sources = sources
self.known = {}
self.packed = {}
self.moved = {}
self.counts = {}
self.movedCount = 0
self.reclaimed = {}
self.dropped = {}
self.sourceKeys = {}
self.touched = {}
for ____, source in ipairs(sources) do
self.sourceKeys[source] = sourceLeasesKey(source)
end
end
function LeaseStore.prototype.prefetch(self, leaseIds)
____exports.inParts(
leaseIds,
function(part)
local found = redis.call(
"HMGET",
self.prefix .. GRANTS_KEY,
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
redis.call("HGET", self.prefix .. GRANTS_KEY, leaseId)
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
return self:countOf(LEASES_KEY)
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
self.prefix .. LEASES_KEY,
"-inf",
____exports.score(nowMs),
"LIMIT",
0,
MOST_RECLAIMED
)
if #ended > 0 then
for ____, source in ipairs(self.sources) do
self:inflightOf(source)
end
end
for ____, leaseId in ipairs(ended) do
do
local __continue22
repeat
local ____self_reclaimed_1 = self.reclaimed
____self_reclaimed_1[#____self_reclaimed_1 + 1] = leaseId
local packed = redis.call("HGET", self.prefix .. GRANTS_KEY, leaseId)
self.known[leaseId] = false
local ____temp_2
if type(packed) == "string" then
____temp_2 = ____exports.unpackedLease(leaseId, packed)
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
return self:nextOf(LEASES_KEY, "")
end
function LeaseStore.prototype.nextExpiryOfMs(self, source)
return self:nextOf(self.sourceKeys[source], source)
end
function LeaseStore.prototype.save(self, ttlMs)
local all = self.prefix .. LEASES_KEY
local grants = self.prefix .. GRANTS_KEY
local gone = {unpack(self.reclaimed)}
if #gone > 0 then
for ____, source in ipairs(self.sources) do
redis.call(
"ZREMRANGEBYSCORE",
self.prefix .. self.sourceKeys[source],
"-inf",
____exports.score(self.nowMs)
)
end
end
for source in pairs(self.dropped) do
local key = self.prefix .. self.sourceKeys[source]
____exports.inParts(
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
local expiry = ____exports.score(lease.expiresAtMs)
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
local key = self.prefix .. self.sourceKeys[source]
____exports.inParts(
keptOf[source],
function(part) return redis.call(
"ZADD",
key,
unpack(part)
) end
)
redis.call("PEXPIRE", key, ttlMs)
end
____exports.inParts(
gone,
function(part)
redis.call(
"ZREM",
all,
unpack(part)
)
redis.call(
"HDEL",
grants,
unpack(part)
)
end
)
____exports.inParts(
kept,
function(part) return redis.call(
"ZADD",
all,
unpack(part)
) end
)
local changed = self:changedLeases()
____exports.inParts(
changed,
function(part) return redis.call(
"HSET",
grants,
unpack(part)
) end
)
if #kept + #changed == 0 then
return
end
redis.call("PEXPIRE", all, ttlMs)
redis.call("PEXPIRE", grants, ttlMs)
end
function LeaseStore.prototype.changedLeases(self)
local changed = {}
for leaseId in pairs(self.known) do
do
local __continue46
repeat
local lease = self.known[leaseId]
if lease == false then
__continue46 = true
break
end
local packed = ____exports.packedLease(lease)
if packed == self.packed[leaseId] and self.moved[leaseId] == nil then
__continue46 = true
break
end
changed[#changed + 1] = leaseId
changed[#changed + 1] = packed
__continue46 = true
until true
if not __continue46 then
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
local lease = ____exports.unpackedLease(leaseId, packed)
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
local stored = tonumber(redis.call(
"ZCOUNT",
self.prefix .. key,
"(" .. ____exports.score(self.nowMs),
"+inf"
)) or 0
self.counts[key] = stored
return stored
end
function LeaseStore.prototype.changeCounts(self, lease, by)
local own = self.sourceKeys[lease.grant.source]
self.counts[LEASES_KEY] = self:countOf(LEASES_KEY) + by
self.counts[own] = self:countOf(own) + by
end
function LeaseStore.prototype.nextOf(self, key, source)
local next = nil
local stored = redis.call(
"ZRANGEBYSCORE",
self.prefix .. key,
"(" .. ____exports.score(self.nowMs),
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
local __continue62
repeat
if self.moved[stored[at + 1]] ~= nil then
__continue62 = true
break
end
next = tonumber(stored[at + 1 + 1]) or nil
break
until true
if not __continue62 then
break
end
end
at = at + 2
end
end
for leaseId in pairs(self.moved) do
do
local __continue64
repeat
local lease = self.known[leaseId]
if lease == false or source ~= "" and lease.grant.source ~= source then
__continue64 = true
break
end
if next == nil or lease.expiresAtMs < next then
next = lease.expiresAtMs
end
__continue64 = true
until true
if not __continue64 then
break
end
end
end
return next
end
MOST_ARGUMENTS = 1000
return ____exports
end,
["scope-clock"] = function(...) 
local ____exports = {}
local unpacked
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
return aheadMs >= 0 and aheadMs < math.huge and latestMs > 0 and latestMs < math.huge and ({aheadMs, latestMs}) or nil
end
function ____exports.scopeClock(server, stored)
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
return ____exports
end,
["size-store"] = function(...) 
local ____lualib = require("lualib_bundle")
local __TS__Class = ____lualib.__TS__Class
local __TS__New = ____lualib.__TS__New
local ____exports = {}
local packedRecord, makeRoom, MOST_RECORDS, SizeBook
local ____keys_2Ejs = require("keys")
local SIZES_KEY = ____keys_2Ejs.SIZES_KEY
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
if (tonumber(redis.call("HLEN", key)) or 0) < MOST_RECORDS then
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
MOST_RECORDS = 4096
____exports.SizeStore = __TS__Class()
local SizeStore = ____exports.SizeStore
SizeStore.name = "SizeStore"
function SizeStore.prototype.____constructor(self, prefix)
self.prefix = prefix
self.books = {}
end
function SizeStore.prototype.bookOf(self, model)
local book = __TS__New(SizeBook, self.prefix .. SIZES_KEY, model)
local ____self_books_0 = self.books
____self_books_0[#____self_books_0 + 1] = book
return book
end
function SizeStore.prototype.save(self, ttlMs)
for ____, book in ipairs(self.books) do
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
return ____exports
end,
["scope-store"] = function(...) 
local ____lualib = require("lualib_bundle")
local __TS__ArrayMap = ____lualib.__TS__ArrayMap
local __TS__ArrayConcat = ____lualib.__TS__ArrayConcat
local __TS__New = ____lualib.__TS__New
local __TS__Iterator = ____lualib.__TS__Iterator
local __TS__ObjectAssign = ____lualib.__TS__ObjectAssign
local __TS__ArrayPush = ____lualib.__TS__ArrayPush
local ____exports = {}
local readState, sourceRecord, unpackedValues, applyLearnedLimits, saveState, SCOPE_FIELDS
local ____gate_2Ejs = require("domain.gates.gate")
local gateRules = ____gate_2Ejs.gateRules
local ____pacer_2Ejs = require("domain.scheduling.pacer")
local lowerLimit = ____pacer_2Ejs.lowerLimit
local ____scope_2Dstate_2Ejs = require("domain.scope-state")
local newScopeState = ____scope_2Dstate_2Ejs.newScopeState
local newSourceRecord = ____scope_2Dstate_2Ejs.newSourceRecord
local ____common_2Dlimits_2Ejs = require("common-limits")
local commonLimits = ____common_2Dlimits_2Ejs.commonLimits
local ____keys_2Ejs = require("keys")
local CLOCK_FIELD = ____keys_2Ejs.CLOCK_FIELD
local LIMITS_FIELD = ____keys_2Ejs.LIMITS_FIELD
local LIMITS_ID_FIELD = ____keys_2Ejs.LIMITS_ID_FIELD
local SCOPE_FIELD = ____keys_2Ejs.SCOPE_FIELD
local STATE_KEY = ____keys_2Ejs.STATE_KEY
local ____layout_2Ejs = require("layout")
local flattenScope = ____layout_2Ejs.flattenScope
local flattenSource = ____layout_2Ejs.flattenSource
local LAYOUT_VERSION = ____layout_2Ejs.LAYOUT_VERSION
local progressOf = ____layout_2Ejs.progressOf
local restoredSource = ____layout_2Ejs.restoredSource
local restoreScope = ____layout_2Ejs.restoreScope
local ____lease_2Dstore_2Ejs = require("lease-store")
local inParts = ____lease_2Dstore_2Ejs.inParts
local LeaseStore = ____lease_2Dstore_2Ejs.LeaseStore
local ____scope_2Dclock_2Ejs = require("scope-clock")
local scopeClock = ____scope_2Dclock_2Ejs.scopeClock
local ____size_2Dstore_2Ejs = require("size-store")
local SizeStore = ____size_2Dstore_2Ejs.SizeStore
local ____worker_2Dstore_2Ejs = require("worker-store")
local loadWorkers = ____worker_2Dstore_2Ejs.loadWorkers
local saveWorkers = ____worker_2Dstore_2Ejs.saveWorkers
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
function sourceRecord(packed, nowMs)
local ____temp_7
if packed == nil then
____temp_7 = nil
else
____temp_7 = unpackedValues(packed)
end
local values = ____temp_7
if values ~= nil then
return restoredSource(values)
end
local record = newSourceRecord(nowMs)
record.breaker.epoch = math.floor(nowMs)
return record
end
function unpackedValues(packed)
local values = {}
pcall(function()
values = cmsgpack.unpack(packed)
end)
return type(values) == "table" and values[1] == LAYOUT_VERSION and values or nil
end
function applyLearnedLimits(source)
local ____source_8 = source
local config = ____source_8.config
local pacer = ____source_8.pacer
if pacer.learnedRpm == 0 and pacer.learnedTpm == 0 then
return
end
local rpm = lowerLimit(config.rpm, pacer.learnedRpm)
local tpm = lowerLimit(config.tpm, pacer.learnedTpm)
source.rules = gateRules(__TS__ObjectAssign({}, config, {rpm = rpm, tpm = tpm}))
end
function saveState(prefix, state, always, touched, stored, ttlMs)
local key = prefix .. STATE_KEY
local changed = {unpack(always)}
for name in pairs(touched) do
local packed = cmsgpack.pack(flattenSource(state.sources:get(name)))
if packed ~= stored[name] then
__TS__ArrayPush(changed, name, packed)
end
end
local scope = cmsgpack.pack(flattenScope(state))
if scope ~= stored[SCOPE_FIELD] then
__TS__ArrayPush(changed, SCOPE_FIELD, scope)
end
redis.call(
"HSET",
key,
unpack(changed)
)
redis.call("PEXPIRE", key, ttlMs)
end
function ____exports.loadScope(prefix, own, server)
local names = __TS__ArrayMap(
own.sources,
function(____, source) return source.name end
)
local stored = readState(
prefix,
__TS__ArrayConcat(SCOPE_FIELDS, names)
)
local clock = scopeClock(server, stored[CLOCK_FIELD])
local nowMs = clock.nowMs
local ____commonLimits_result_0 = commonLimits(own, clock.isNew and ({}) or stored, nowMs)
local setup = ____commonLimits_result_0.setup
local changed = ____commonLimits_result_0.changed
local leases = __TS__New(LeaseStore, prefix, nowMs, names)
local sizes = __TS__New(SizeStore, prefix)
local function recordOf(name)
local ____sourceRecord_2 = sourceRecord
local ____clock_isNew_1
if clock.isNew then
____clock_isNew_1 = nil
else
____clock_isNew_1 = stored[name]
end
return ____sourceRecord_2(____clock_isNew_1, nowMs)
end
local state = newScopeState(
setup,
nowMs,
leases,
function(model) return sizes:bookOf(model) end,
recordOf
)
for ____, source in __TS__Iterator(state.sources:values()) do
applyLearnedLimits(source)
local breaker = source.breaker
if breaker.probeLease ~= "" and leases:get(breaker.probeLease) == nil then
breaker.probeLease = ""
end
end
local ____clock_isNew_3
if clock.isNew then
____clock_isNew_3 = nil
else
____clock_isNew_3 = stored[SCOPE_FIELD]
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
CLOCK_FIELD,
clock.packed,
unpack(changed)
}
saveState(
prefix,
state,
always,
leases.touched,
stored,
ttlMs
)
leases:save(ttlMs)
sizes:save(ttlMs)
if setup.scheduling.fairness then
saveWorkers(prefix, state.workers, workers, ttlMs)
end
end
}
end
SCOPE_FIELDS = {CLOCK_FIELD, LIMITS_ID_FIELD, LIMITS_FIELD, SCOPE_FIELD}
function ____exports.loadProgress(prefix, server)
local stored = readState(prefix, {CLOCK_FIELD, SCOPE_FIELD})
local ____scopeClock_result_5 = scopeClock(server, stored[CLOCK_FIELD])
local nowMs = ____scopeClock_result_5.nowMs
local isNew = ____scopeClock_result_5.isNew
local ____temp_6
if isNew or stored[SCOPE_FIELD] == nil then
____temp_6 = nil
else
____temp_6 = unpackedValues(stored[SCOPE_FIELD])
end
local values = ____temp_6
return {
lastProgressMs = values == nil and -math.huge or progressOf(values),
nowMs = nowMs
}
end
return ____exports
end,
["worker-store"] = function(...) 
local ____lualib = require("lualib_bundle")
local Map = ____lualib.Map
local __TS__New = ____lualib.__TS__New
local __TS__Iterator = ____lualib.__TS__Iterator
local ____exports = {}
local packedWorker
local ____keys_2Ejs = require("keys")
local WORKERS_KEY = ____keys_2Ejs.WORKERS_KEY
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
function ____exports.loadWorkers(prefix, packed)
local book = __TS__New(Map)
local stored = redis.call("HGETALL", prefix .. WORKERS_KEY)
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
function ____exports.saveWorkers(prefix, book, packed, ttlMs)
local key = prefix .. WORKERS_KEY
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
return ____exports
end,
["sent-batch"] = function(...) 
local ____exports = {}
local NONE = {}
function ____exports.receivedBatch(sent)
local ____sent_0 = sent
local candidates = ____sent_0.candidates
for ____, want in ipairs(sent.wants) do
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
return ____exports
end,
}
local ____entry = require("main", ...)
return ____entry.answer
`;
