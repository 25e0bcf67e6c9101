-- SPDX-License-Identifier: BSD-2-Clause
-- Loops that LuaJIT compiles. For as many seconds as are given, else 10:
--
--	cairn code run -- luajit examples/traces.lua 60 &
--	cairn stack $(pgrep -n luajit)
--	cairn code $(pgrep -n luajit)

local function sum(t)
	local s = 0
	for i = 1, #t do s = s + t[i] % 7 end
	return s
end

local t, x = {}, 0
for i = 1, 10000 do t[i] = i * 3 end
local stop = os.time() + tonumber(arg[1] or 10)
while os.time() < stop do
	for _ = 1, 100 do x = x + sum(t) end
end
print(x)
