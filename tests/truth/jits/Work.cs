class Work {
	static int Fib(int n) { return n < 2 ? n : Fib(n - 1) + Fib(n - 2); }
	static void Main() { long s = 0; while (true) s += Fib(25); }
}
