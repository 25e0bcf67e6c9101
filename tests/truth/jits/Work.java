// Compiled code, the interpreter, and the JVM below both: until the time is over.
import java.util.HashMap;
import java.util.Map;

public class Work {
	static int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }

	static long sum(int[] a) {
		long s = 0;
		for (int v : a)
			s += v % 7;
		return s;
	}

	public static void main(String[] args) {
		int[] a = new int[10000];
		Map<Integer, String> map = new HashMap<>();
		long stop = System.currentTimeMillis() + 1000 * Long.parseLong(args[0]), x = 0;
		for (int i = 0; i < a.length; i++)
			a[i] = i * 3;
		while (System.currentTimeMillis() < stop) {
			x += sum(a) + fib(15);
			for (int i = 0; i < 100; i++)
				map.put(i, "v" + i + x);
			x += map.values().stream().mapToInt(String::length).sum();
		}
		System.out.println(x);
	}
}
