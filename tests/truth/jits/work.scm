(define (fib n) (if (< n 2) n (+ (fib (- n 1)) (fib (- n 2)))))
(let loop ((i 0)) (fib 25) (loop (+ i 1)))
