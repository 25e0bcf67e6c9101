-- Traces that call back into C, loops, recursion: until the time is over.
local function fib(n) if n < 2 then return n end return fib(n - 1) + fib(n - 2) end
local function sum(t) local s = 0 for i = 1, #t do s = s + t[i] % 7 end return s end
local t, x = {}, 0
for i = 1, 10000 do t[i] = i * 3 end
local stop = os.time() + tonumber(arg[1])
while os.time() < stop do
	for i = 1, 50 do x = x + sum(t) end
	x = x + fib(18)
	local s = {}
	for i = 1, 200 do s[#s + 1] = ("%d:%s"):format(i, x) end
	x = x + #table.concat(s) % 10
end
print(x)
