// Optimized code, the interpreter, and the runtime below both: until the time is over.
function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
function sum(a) { return a.reduce((s, v) => s + v % 7, 0); }
function text(n) { return JSON.stringify(Array.from({ length: n }, (_, i) => ({ i, name: 'v' + i }))); }
const a = Array.from({ length: 10000 }, (_, i) => i * 3);
const stop = Date.now() + 1000 * Number(process.argv[2]);
let x = 0;
while (Date.now() < stop) {
	x += sum(a) + fib(15);
	x += JSON.parse(text(100)).map(o => o.name).sort().join().length;
}
console.log(x);
