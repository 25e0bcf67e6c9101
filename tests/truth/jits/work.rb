# Methods that yield to blocks, which YJIT compiles after some calls.
def each_of(n)
  i = 0
  while i < n
    yield i
    i += 1
  end
end

def work(n)
  sum = 0
  each_of(n) { |i| sum += (i ^ n) % 7 }
  [3, 1, 2].each { |x| sum += x }
  sum
end

loop { 100.times { |n| work(n) } }
