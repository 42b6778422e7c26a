;; The expensive operations of reading and training, in WebAssembly, four numbers at a time.
;;
;; All numbers are float32; addresses and strides are in bytes, the other sizes in numbers. Matrices are row-major, and their
;; rows are padded to a multiple of 8 numbers with zeros. plain.js has the same functions in plain JavaScript.
(module
  (memory (export "memory") 1)

  ;; y = x w^T + start: x is (T, K), y is (T, N); T is a multiple of 4 and N of 8. w is (N, K) in groups of 8 interleaved rows,
  ;; so that 8 columns of y are computed together. A block of 4 rows and 8 columns stays in 8 registers. `start` has its own
  ;; stride: 0 for a bias, that of y for adding to y itself.
  (func (export "multiply") (param $x i32) (param $w i32) (param $y i32) (param $T i32) (param $K i32) (param $N i32)
    (param $row i32) (param $out i32) (param $start i32) (param $stride i32)
    (local $row2 i32) (local $row3 i32) (local $ends i32) (local $left i32) (local $end i32) (local $right i32)
    (local $t i32) (local $o i32) (local $s i32)
    (local $u v128) (local $v v128) (local $f v128)
    (local $a0 v128) (local $a1 v128) (local $b0 v128) (local $b1 v128)
    (local $c0 v128) (local $c1 v128) (local $d0 v128) (local $d1 v128)
    (local.set $row2 (i32.shl (local.get $row) (i32.const 1)))
    (local.set $row3 (i32.add (local.get $row) (local.get $row2)))
    (local.set $ends (i32.add (local.get $y) (i32.shl (local.get $N) (i32.const 2))))
    (local.set $K (i32.shl (local.get $K) (i32.const 2)))
    (loop $columns
      (local.set $left (local.get $x))
      (local.set $o (local.get $y))
      (local.set $s (local.get $start))
      (local.set $t (local.get $T))
      (loop $rows
        (local.set $a0 (v128.load (local.get $s))) (local.set $a1 (v128.load offset=16 (local.get $s)))
        (local.set $s (i32.add (local.get $s) (local.get $stride)))
        (local.set $b0 (v128.load (local.get $s))) (local.set $b1 (v128.load offset=16 (local.get $s)))
        (local.set $s (i32.add (local.get $s) (local.get $stride)))
        (local.set $c0 (v128.load (local.get $s))) (local.set $c1 (v128.load offset=16 (local.get $s)))
        (local.set $s (i32.add (local.get $s) (local.get $stride)))
        (local.set $d0 (v128.load (local.get $s))) (local.set $d1 (v128.load offset=16 (local.get $s)))
        (local.set $s (i32.add (local.get $s) (local.get $stride)))
        (local.set $right (local.get $w))
        (local.set $end (i32.add (local.get $left) (local.get $K)))
        (loop $sum
          (local.set $u (v128.load (local.get $right)))
          (local.set $v (v128.load offset=16 (local.get $right)))
          (local.set $f (v128.load32_splat (local.get $left)))
          (local.set $a0 (f32x4.add (local.get $a0) (f32x4.mul (local.get $f) (local.get $u))))
          (local.set $a1 (f32x4.add (local.get $a1) (f32x4.mul (local.get $f) (local.get $v))))
          (local.set $f (v128.load32_splat (i32.add (local.get $left) (local.get $row))))
          (local.set $b0 (f32x4.add (local.get $b0) (f32x4.mul (local.get $f) (local.get $u))))
          (local.set $b1 (f32x4.add (local.get $b1) (f32x4.mul (local.get $f) (local.get $v))))
          (local.set $f (v128.load32_splat (i32.add (local.get $left) (local.get $row2))))
          (local.set $c0 (f32x4.add (local.get $c0) (f32x4.mul (local.get $f) (local.get $u))))
          (local.set $c1 (f32x4.add (local.get $c1) (f32x4.mul (local.get $f) (local.get $v))))
          (local.set $f (v128.load32_splat (i32.add (local.get $left) (local.get $row3))))
          (local.set $d0 (f32x4.add (local.get $d0) (f32x4.mul (local.get $f) (local.get $u))))
          (local.set $d1 (f32x4.add (local.get $d1) (f32x4.mul (local.get $f) (local.get $v))))
          (local.set $right (i32.add (local.get $right) (i32.const 32)))
          (local.set $left (i32.add (local.get $left) (i32.const 4)))
          (br_if $sum (i32.lt_u (local.get $left) (local.get $end))))
        (v128.store (local.get $o) (local.get $a0)) (v128.store offset=16 (local.get $o) (local.get $a1))
        (local.set $o (i32.add (local.get $o) (local.get $out)))
        (v128.store (local.get $o) (local.get $b0)) (v128.store offset=16 (local.get $o) (local.get $b1))
        (local.set $o (i32.add (local.get $o) (local.get $out)))
        (v128.store (local.get $o) (local.get $c0)) (v128.store offset=16 (local.get $o) (local.get $c1))
        (local.set $o (i32.add (local.get $o) (local.get $out)))
        (v128.store (local.get $o) (local.get $d0)) (v128.store offset=16 (local.get $o) (local.get $d1))
        (local.set $o (i32.add (local.get $o) (local.get $out)))
        (local.set $left (i32.sub (i32.add (i32.add (local.get $left) (local.get $row3)) (local.get $row)) (local.get $K)))
        (br_if $rows (local.tee $t (i32.sub (local.get $t) (i32.const 4)))))
      (local.set $w (i32.add (local.get $w) (i32.shl (local.get $K) (i32.const 3))))
      (local.set $start (i32.add (local.get $start) (i32.const 32)))
      (local.set $y (i32.add (local.get $y) (i32.const 32)))
      (br_if $columns (i32.lt_u (local.get $y) (local.get $ends)))))

  ;; x (K, N) as `multiply` reads w = x^T: groups of 8 columns, one after the other; N is a multiple of 8.
  (func (export "interleave") (param $x i32) (param $out i32) (param $K i32) (param $N i32) (param $row i32)
    (local $from i32) (local $k i32)
    (loop $groups
      (local.set $from (local.get $x))
      (local.set $k (local.get $K))
      (loop $rows
        (v128.store (local.get $out) (v128.load (local.get $from)))
        (v128.store offset=16 (local.get $out) (v128.load offset=16 (local.get $from)))
        (local.set $from (i32.add (local.get $from) (local.get $row)))
        (local.set $out (i32.add (local.get $out) (i32.const 32)))
        (br_if $rows (local.tee $k (i32.sub (local.get $k) (i32.const 1)))))
      (local.set $x (i32.add (local.get $x) (i32.const 32)))
      (br_if $groups (local.tee $N (i32.sub (local.get $N) (i32.const 8))))))

  ;; The transpose of x (M, N), of which both sizes are rounded up to multiples of 4.
  (func $transpose (export "transpose") (param $x i32) (param $out i32) (param $M i32) (param $N i32) (param $row i32)
    (param $outRow i32)
    (local $from i32) (local $to i32) (local $n i32) (local $m i32)
    (local $a v128) (local $b v128) (local $c v128) (local $d v128) (local $e v128) (local $f v128) (local $g v128) (local $h v128)
    (local.set $m (local.get $M))
    (loop $rows
      (local.set $from (local.get $x))
      (local.set $to (local.get $out))
      (local.set $n (local.get $N))
      (loop $columns
        (local.set $a (v128.load (local.get $from)))
        (local.set $b (v128.load (i32.add (local.get $from) (local.get $row))))
        (local.set $c (v128.load (i32.add (local.get $from) (i32.shl (local.get $row) (i32.const 1)))))
        (local.set $d (v128.load (i32.add (local.get $from) (i32.mul (local.get $row) (i32.const 3)))))
        (local.set $e (i8x16.shuffle 0 1 2 3 16 17 18 19 4 5 6 7 20 21 22 23 (local.get $a) (local.get $b)))
        (local.set $f (i8x16.shuffle 8 9 10 11 24 25 26 27 12 13 14 15 28 29 30 31 (local.get $a) (local.get $b)))
        (local.set $g (i8x16.shuffle 0 1 2 3 16 17 18 19 4 5 6 7 20 21 22 23 (local.get $c) (local.get $d)))
        (local.set $h (i8x16.shuffle 8 9 10 11 24 25 26 27 12 13 14 15 28 29 30 31 (local.get $c) (local.get $d)))
        (v128.store (local.get $to)
          (i8x16.shuffle 0 1 2 3 4 5 6 7 16 17 18 19 20 21 22 23 (local.get $e) (local.get $g)))
        (local.set $to (i32.add (local.get $to) (local.get $outRow)))
        (v128.store (local.get $to)
          (i8x16.shuffle 8 9 10 11 12 13 14 15 24 25 26 27 28 29 30 31 (local.get $e) (local.get $g)))
        (local.set $to (i32.add (local.get $to) (local.get $outRow)))
        (v128.store (local.get $to)
          (i8x16.shuffle 0 1 2 3 4 5 6 7 16 17 18 19 20 21 22 23 (local.get $f) (local.get $h)))
        (local.set $to (i32.add (local.get $to) (local.get $outRow)))
        (v128.store (local.get $to)
          (i8x16.shuffle 8 9 10 11 12 13 14 15 24 25 26 27 28 29 30 31 (local.get $f) (local.get $h)))
        (local.set $to (i32.add (local.get $to) (local.get $outRow)))
        (local.set $from (i32.add (local.get $from) (i32.const 16)))
        (br_if $columns (i32.gt_s (local.tee $n (i32.sub (local.get $n) (i32.const 4))) (i32.const 0))))
      (local.set $x (i32.add (local.get $x) (i32.shl (local.get $row) (i32.const 2))))
      (local.set $out (i32.add (local.get $out) (i32.const 16)))
      (br_if $rows (i32.gt_s (local.tee $m (i32.sub (local.get $m) (i32.const 4))) (i32.const 0)))))

  ;; x (N, K) as `multiply` reads w = x: groups of 8 interleaved rows. N and K are multiples of 8.
  (func (export "interleaveTransposed") (param $x i32) (param $out i32) (param $N i32) (param $K i32) (param $row i32)
    (loop $groups
      (call $transpose (local.get $x) (local.get $out) (i32.const 8) (local.get $K) (local.get $row) (i32.const 32))
      (local.set $x (i32.add (local.get $x) (i32.shl (local.get $row) (i32.const 3))))
      (local.set $out (i32.add (local.get $out) (i32.shl (local.get $K) (i32.const 5))))
      (br_if $groups (local.tee $N (i32.sub (local.get $N) (i32.const 8))))))

  ;; e^x to about 1e-7 of it, and 0 below -87. x = n ln 2 + r with |r| <= ln 2 / 2; e^r is a polynomial (Cephes, expf), and
  ;; adding n to the exponent's bits multiplies by 2^n.
  (func $exp (param $x v128) (result v128)
    (local $n v128) (local $r v128) (local $p v128)
    (local.set $n (f32x4.add (f32x4.mul (local.get $x) (v128.const f32x4 1.44269504 1.44269504 1.44269504 1.44269504))
      (v128.const f32x4 12582912 12582912 12582912 12582912))) ;; 1.5 * 2^23: the sum's last bits are the rounded number
    (local.set $r (f32x4.sub (local.get $n) (v128.const f32x4 12582912 12582912 12582912 12582912)))
    (local.set $p (f32x4.mul (local.get $r)
      (v128.const f32x4 -2.12194440e-4 -2.12194440e-4 -2.12194440e-4 -2.12194440e-4)))
    (local.set $r (f32x4.sub (f32x4.sub (local.get $x)
      (f32x4.mul (local.get $r) (v128.const f32x4 0.693359375 0.693359375 0.693359375 0.693359375))) (local.get $p)))
    (local.set $p (v128.const f32x4 1.9875691500e-4 1.9875691500e-4 1.9875691500e-4 1.9875691500e-4))
    (local.set $p (f32x4.add (f32x4.mul (local.get $p) (local.get $r))
      (v128.const f32x4 1.3981999507e-3 1.3981999507e-3 1.3981999507e-3 1.3981999507e-3)))
    (local.set $p (f32x4.add (f32x4.mul (local.get $p) (local.get $r))
      (v128.const f32x4 8.3334519073e-3 8.3334519073e-3 8.3334519073e-3 8.3334519073e-3)))
    (local.set $p (f32x4.add (f32x4.mul (local.get $p) (local.get $r))
      (v128.const f32x4 4.1665795894e-2 4.1665795894e-2 4.1665795894e-2 4.1665795894e-2)))
    (local.set $p (f32x4.add (f32x4.mul (local.get $p) (local.get $r))
      (v128.const f32x4 1.6666665459e-1 1.6666665459e-1 1.6666665459e-1 1.6666665459e-1)))
    (local.set $p (f32x4.add (f32x4.mul (local.get $p) (local.get $r)) (v128.const f32x4 0.5 0.5 0.5 0.5)))
    (local.set $p (f32x4.add (f32x4.mul (f32x4.mul (local.get $p) (local.get $r)) (local.get $r))
      (f32x4.add (local.get $r) (v128.const f32x4 1 1 1 1))))
    (v128.and (i32x4.add (local.get $p) (i32x4.shl (local.get $n) (i32.const 23)))
      (f32x4.gt (local.get $x) (v128.const f32x4 -87 -87 -87 -87))))

  ;; The sum of the four numbers.
  (func $total (param $x v128) (result f32)
    (f32.add (f32.add (f32x4.extract_lane 0 (local.get $x)) (f32x4.extract_lane 1 (local.get $x)))
      (f32.add (f32x4.extract_lane 2 (local.get $x)) (f32x4.extract_lane 3 (local.get $x)))))

  ;; Softmax of scale * x in place, over the first n numbers of each row, or over the first r + 1 of row r if `causal`; the
  ;; others become 0.
  (func (export "softmax") (param $x i32) (param $rows i32) (param $n i32) (param $row i32) (param $scale f32) (param $causal i32)
    (local $r i32) (local $i i32) (local $end i32) (local $highest v128) (local $sum v128) (local $s v128)
    (local.set $s (f32x4.splat (local.get $scale)))
    (loop $each
      (local.set $end (i32.add (local.get $x) (local.get $row)))
      (local.set $i (i32.add (local.get $x) (i32.shl
        (select (i32.add (local.get $r) (i32.const 1)) (local.get $n) (local.get $causal)) (i32.const 2))))
      (block $full
        (loop $left
          (br_if $full (i32.ge_u (local.get $i) (local.get $end)))
          (f32.store (local.get $i) (f32.const -inf))
          (local.set $i (i32.add (local.get $i) (i32.const 4)))
          (br $left)))
      (local.set $highest (f32x4.splat (f32.const -inf)))
      (local.set $i (local.get $x))
      (loop $largest
        (local.set $highest (f32x4.pmax (local.get $highest) (v128.load (local.get $i))))
        (br_if $largest (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 16))) (local.get $end))))
      (local.set $highest (f32x4.pmax (local.get $highest)
        (i8x16.shuffle 8 9 10 11 12 13 14 15 0 1 2 3 4 5 6 7 (local.get $highest) (local.get $highest))))
      (local.set $highest (f32x4.splat (f32.max (f32x4.extract_lane 0 (local.get $highest))
        (f32x4.extract_lane 1 (local.get $highest)))))
      (local.set $sum (f32x4.splat (f32.const 0)))
      (local.set $i (local.get $x))
      (loop $powers
        (v128.store (local.get $i)
          (call $exp (f32x4.mul (f32x4.sub (v128.load (local.get $i)) (local.get $highest)) (local.get $s))))
        (local.set $sum (f32x4.add (local.get $sum) (v128.load (local.get $i))))
        (br_if $powers (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 16))) (local.get $end))))
      (local.set $sum (f32x4.splat (f32.div (f32.const 1) (call $total (local.get $sum)))))
      (local.set $i (local.get $x))
      (loop $shares
        (v128.store (local.get $i) (f32x4.mul (v128.load (local.get $i)) (local.get $sum)))
        (br_if $shares (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 16))) (local.get $end))))
      (local.set $x (local.get $end))
      (br_if $each (i32.lt_u (local.tee $r (i32.add (local.get $r) (i32.const 1))) (local.get $rows)))))

  ;; From the gradient g with respect to softmax's output p to that with respect to its input, in place.
  (func (export "softmaxBack") (param $p i32) (param $g i32) (param $rows i32) (param $row i32) (param $scale f32)
    (local $i i32) (local $sum v128)
    (loop $each
      (local.set $sum (f32x4.splat (f32.const 0)))
      (local.set $i (i32.const 0))
      (loop $products
        (local.set $sum (f32x4.add (local.get $sum) (f32x4.mul
          (v128.load (i32.add (local.get $p) (local.get $i))) (v128.load (i32.add (local.get $g) (local.get $i))))))
        (br_if $products (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 16))) (local.get $row))))
      (local.set $sum (f32x4.splat (call $total (local.get $sum))))
      (local.set $i (i32.const 0))
      (loop $differences
        (v128.store (i32.add (local.get $g) (local.get $i)) (f32x4.mul (f32x4.splat (local.get $scale)) (f32x4.mul
          (v128.load (i32.add (local.get $p) (local.get $i)))
          (f32x4.sub (v128.load (i32.add (local.get $g) (local.get $i))) (local.get $sum)))))
        (br_if $differences (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 16))) (local.get $row))))
      (local.set $p (i32.add (local.get $p) (local.get $row)))
      (local.set $g (i32.add (local.get $g) (local.get $row)))
      (br_if $each (local.tee $rows (i32.sub (local.get $rows) (i32.const 1))))))

  ;; LayerNorm of the first n numbers of each row of x: `normed` has mean 0 and variance 1, out = normed * w + b, and `scales`
  ;; holds one divided by each row's standard deviation.
  (func (export "layerNorm") (param $x i32) (param $w i32) (param $b i32) (param $normed i32) (param $out i32) (param $scales i32)
    (param $rows i32) (param $n i32) (param $row i32)
    (local $i i32) (local $mean f32) (local $variance f32) (local $m v128) (local $s v128) (local $sum v128) (local $v v128)
    (loop $each
      (local.set $sum (f32x4.splat (f32.const 0)))
      (local.set $i (i32.const 0))
      (loop $add
        (local.set $sum (f32x4.add (local.get $sum) (v128.load (i32.add (local.get $x) (local.get $i)))))
        (br_if $add (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 16))) (local.get $row))))
      (local.set $mean (f32.div (call $total (local.get $sum)) (f32.convert_i32_u (local.get $n))))
      (local.set $m (f32x4.splat (local.get $mean)))
      (local.set $sum (f32x4.splat (f32.const 0)))
      (local.set $i (i32.const 0))
      (loop $squares
        (local.set $v (f32x4.sub (v128.load (i32.add (local.get $x) (local.get $i))) (local.get $m)))
        (local.set $sum (f32x4.add (local.get $sum) (f32x4.mul (local.get $v) (local.get $v))))
        (br_if $squares (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 16))) (local.get $row))))
      ;; the padding, which is zero, contributed the squared mean
      (local.set $variance (f32.div (f32.sub (call $total (local.get $sum)) (f32.mul
        (f32.convert_i32_s (i32.sub (i32.shr_u (local.get $row) (i32.const 2)) (local.get $n)))
        (f32.mul (local.get $mean) (local.get $mean)))) (f32.convert_i32_u (local.get $n))))
      (local.set $variance (f32.div (f32.const 1) (f32.sqrt (f32.add (local.get $variance) (f32.const 1e-5)))))
      (f32.store (local.get $scales) (local.get $variance))
      (local.set $s (f32x4.splat (local.get $variance)))
      (local.set $i (i32.const 0))
      (loop $write
        (local.set $v (f32x4.mul (f32x4.sub (v128.load (i32.add (local.get $x) (local.get $i))) (local.get $m)) (local.get $s)))
        (v128.store (i32.add (local.get $normed) (local.get $i)) (local.get $v))
        (v128.store (i32.add (local.get $out) (local.get $i)) (f32x4.add (v128.load (i32.add (local.get $b) (local.get $i)))
          (f32x4.mul (local.get $v) (v128.load (i32.add (local.get $w) (local.get $i))))))
        (br_if $write (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 16))) (local.get $row))))
      (local.set $x (i32.add (local.get $x) (local.get $row)))
      (local.set $normed (i32.add (local.get $normed) (local.get $row)))
      (local.set $out (i32.add (local.get $out) (local.get $row)))
      (local.set $scales (i32.add (local.get $scales) (i32.const 4)))
      (br_if $each (local.tee $rows (i32.sub (local.get $rows) (i32.const 1))))))

  ;; From the gradient g with respect to LayerNorm's output to that with respect to its input, dx, which may be g; the
  ;; gradients of w and b are added to dw and db. Shifting or scaling a row does not change the output, so dx has no component
  ;; in these directions.
  (func (export "layerNormBack") (param $g i32) (param $normed i32) (param $w i32) (param $scales i32) (param $dw i32) (param $db i32)
    (param $dx i32) (param $rows i32) (param $n i32) (param $row i32)
    (local $i i32) (local $shift v128) (local $stretch v128) (local $s v128) (local $v v128) (local $gw v128) (local $share f32)
    (local.set $share (f32.div (f32.const 1) (f32.convert_i32_u (local.get $n))))
    (loop $each
      (local.set $shift (f32x4.splat (f32.const 0)))
      (local.set $stretch (local.get $shift))
      (local.set $i (i32.const 0))
      (loop $read
        (local.set $gw (v128.load (i32.add (local.get $g) (local.get $i))))
        (local.set $v (v128.load (i32.add (local.get $normed) (local.get $i))))
        (v128.store (i32.add (local.get $db) (local.get $i))
          (f32x4.add (v128.load (i32.add (local.get $db) (local.get $i))) (local.get $gw)))
        (v128.store (i32.add (local.get $dw) (local.get $i)) (f32x4.add (v128.load (i32.add (local.get $dw) (local.get $i)))
          (f32x4.mul (local.get $gw) (local.get $v))))
        (local.set $gw (f32x4.mul (local.get $gw) (v128.load (i32.add (local.get $w) (local.get $i)))))
        (local.set $shift (f32x4.add (local.get $shift) (local.get $gw)))
        (local.set $stretch (f32x4.add (local.get $stretch) (f32x4.mul (local.get $gw) (local.get $v))))
        (br_if $read (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 16))) (local.get $row))))
      (local.set $shift (f32x4.splat (f32.mul (call $total (local.get $shift)) (local.get $share))))
      (local.set $stretch (f32x4.splat (f32.mul (call $total (local.get $stretch)) (local.get $share))))
      (local.set $s (v128.load32_splat (local.get $scales)))
      (local.set $i (i32.const 0))
      (loop $write
        (v128.store (i32.add (local.get $dx) (local.get $i)) (f32x4.mul (local.get $s) (f32x4.sub (f32x4.sub
          (f32x4.mul (v128.load (i32.add (local.get $g) (local.get $i))) (v128.load (i32.add (local.get $w) (local.get $i))))
          (local.get $shift))
          (f32x4.mul (v128.load (i32.add (local.get $normed) (local.get $i))) (local.get $stretch)))))
        (br_if $write (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 16))) (local.get $row))))
      (local.set $g (i32.add (local.get $g) (local.get $row)))
      (local.set $normed (i32.add (local.get $normed) (local.get $row)))
      (local.set $dx (i32.add (local.get $dx) (local.get $row)))
      (local.set $scales (i32.add (local.get $scales) (i32.const 4)))
      (br_if $each (local.tee $rows (i32.sub (local.get $rows) (i32.const 1))))))

  ;; max(x, 0) in place for n numbers, a multiple of 4 as below; its derivative is written to `slopes`.
  (func (export "relu") (param $x i32) (param $slopes i32) (param $n i32)
    (local $end i32) (local $v v128) (local $positive v128)
    (local.set $end (i32.add (local.get $x) (i32.shl (local.get $n) (i32.const 2))))
    (loop $each
      (local.set $v (v128.load (local.get $x)))
      (local.set $positive (f32x4.gt (local.get $v) (f32x4.splat (f32.const 0))))
      (v128.store (local.get $slopes) (v128.and (f32x4.splat (f32.const 1)) (local.get $positive)))
      (v128.store (local.get $x) (v128.and (local.get $v) (local.get $positive)))
      (local.set $slopes (i32.add (local.get $slopes) (i32.const 16)))
      (br_if $each (i32.lt_u (local.tee $x (i32.add (local.get $x) (i32.const 16))) (local.get $end)))))

  ;; x P(x) in place, where P is the normal distribution function, to within 1.5e-7 (Abramowitz & Stegun 1964, 7.1.26); its
  ;; derivative P(x) + x p(x) is written to `slopes`.
  (func (export "gelu") (param $x i32) (param $slopes i32) (param $n i32)
    (local $end i32) (local $v v128) (local $t v128) (local $e v128) (local $p v128)
    (local.set $end (i32.add (local.get $x) (i32.shl (local.get $n) (i32.const 2))))
    (loop $each
      (local.set $v (v128.load (local.get $x)))
      (local.set $e (call $exp (f32x4.mul (f32x4.mul (local.get $v) (local.get $v)) (v128.const f32x4 -0.5 -0.5 -0.5 -0.5))))
      (local.set $t (f32x4.div (v128.const f32x4 1 1 1 1) (f32x4.add (v128.const f32x4 1 1 1 1) (f32x4.mul
        (f32x4.abs (local.get $v)) (v128.const f32x4 0.231641888 0.231641888 0.231641888 0.231641888)))))
      (local.set $p (v128.const f32x4 0.5307027145 0.5307027145 0.5307027145 0.5307027145))
      (local.set $p (f32x4.add (f32x4.mul (local.get $p) (local.get $t))
        (v128.const f32x4 -0.7265760135 -0.7265760135 -0.7265760135 -0.7265760135)))
      (local.set $p (f32x4.add (f32x4.mul (local.get $p) (local.get $t))
        (v128.const f32x4 0.7107068705 0.7107068705 0.7107068705 0.7107068705)))
      (local.set $p (f32x4.add (f32x4.mul (local.get $p) (local.get $t))
        (v128.const f32x4 -0.142248368 -0.142248368 -0.142248368 -0.142248368)))
      (local.set $p (f32x4.add (f32x4.mul (local.get $p) (local.get $t))
        (v128.const f32x4 0.127414796 0.127414796 0.127414796 0.127414796)))
      (local.set $p (f32x4.mul (f32x4.mul (local.get $p) (local.get $t)) (local.get $e))) ;; 1 - P(|x|)
      (local.set $p (v128.bitselect (local.get $p) (f32x4.sub (v128.const f32x4 1 1 1 1) (local.get $p))
        (f32x4.lt (local.get $v) (f32x4.splat (f32.const 0)))))
      (v128.store (local.get $x) (f32x4.mul (local.get $v) (local.get $p)))
      (v128.store (local.get $slopes) (f32x4.add (local.get $p) (f32x4.mul (local.get $v)
        (f32x4.mul (local.get $e) (v128.const f32x4 0.3989422804 0.3989422804 0.3989422804 0.3989422804)))))
      (local.set $slopes (i32.add (local.get $slopes) (i32.const 16)))
      (br_if $each (i32.lt_u (local.tee $x (i32.add (local.get $x) (i32.const 16))) (local.get $end)))))

  ;; x *= y, for n numbers.
  (func (export "scaleBy") (param $x i32) (param $y i32) (param $n i32)
    (local $end i32)
    (local.set $end (i32.add (local.get $x) (i32.shl (local.get $n) (i32.const 2))))
    (loop $each
      (v128.store (local.get $x) (f32x4.mul (v128.load (local.get $x)) (v128.load (local.get $y))))
      (local.set $y (i32.add (local.get $y) (i32.const 16)))
      (br_if $each (i32.lt_u (local.tee $x (i32.add (local.get $x) (i32.const 16))) (local.get $end)))))

  ;; x += y, for n numbers.
  (func (export "add") (param $x i32) (param $y i32) (param $n i32)
    (local $end i32)
    (local.set $end (i32.add (local.get $x) (i32.shl (local.get $n) (i32.const 2))))
    (loop $each
      (v128.store (local.get $x) (f32x4.add (v128.load (local.get $x)) (v128.load (local.get $y))))
      (local.set $y (i32.add (local.get $y) (i32.const 16)))
      (br_if $each (i32.lt_u (local.tee $x (i32.add (local.get $x) (i32.const 16))) (local.get $end)))))

  ;; Add the sum of the rows of x to `sums`.
  (func (export "addRows") (param $x i32) (param $sums i32) (param $rows i32) (param $row i32)
    (local $i i32)
    (loop $each
      (local.set $i (i32.const 0))
      (loop $columns
        (v128.store (i32.add (local.get $sums) (local.get $i)) (f32x4.add
          (v128.load (i32.add (local.get $sums) (local.get $i))) (v128.load (i32.add (local.get $x) (local.get $i)))))
        (br_if $columns (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 16))) (local.get $row))))
      (local.set $x (i32.add (local.get $x) (local.get $row)))
      (br_if $each (local.tee $rows (i32.sub (local.get $rows) (i32.const 1))))))

  ;; Dropout of n numbers in place: number i becomes 0 if the random number i of this seed (optimizer.js, randomNumbers), as 32
  ;; bits without sign, is below `threshold`, and is multiplied by `scale` otherwise.
  (func (export "dropout") (param $x i32) (param $n i32) (param $seed i32) (param $threshold i32) (param $scale f32)
    (local $end i32) (local $state v128) (local $bits v128)
    (local.set $end (i32.add (local.get $x) (i32.shl (local.get $n) (i32.const 2))))
    (local.set $state (i32x4.add (i32x4.splat (local.get $seed)) (i32x4.mul
      (i32x4.splat (i32.const 0x9e3779b9)) (v128.const i32x4 1 2 3 4))))
    (loop $each
      (local.set $bits (i32x4.mul (v128.xor (local.get $state) (i32x4.shr_u (local.get $state) (i32.const 16)))
        (i32x4.splat (i32.const 0x85ebca6b))))
      (local.set $bits (i32x4.mul (v128.xor (local.get $bits) (i32x4.shr_u (local.get $bits) (i32.const 13)))
        (i32x4.splat (i32.const 0xc2b2ae35))))
      (local.set $bits (v128.xor (local.get $bits) (i32x4.shr_u (local.get $bits) (i32.const 16))))
      (v128.store (local.get $x) (v128.andnot (f32x4.mul (v128.load (local.get $x)) (f32x4.splat (local.get $scale)))
        (i32x4.lt_u (local.get $bits) (i32x4.splat (local.get $threshold)))))
      (local.set $state (i32x4.add (local.get $state) (i32x4.splat (i32.const 0x78dde6e4)))) ;; 4 * 0x9e3779b9
      (br_if $each (i32.lt_u (local.tee $x (i32.add (local.get $x) (i32.const 16))) (local.get $end)))))

  ;; One step of AdamW for n weights x with gradients g * scale and the moments `mean` and `square`: rate is divided by the
  ;; correction of the mean, `correction` is that of the square, and the weights are first multiplied by `decay`.
  (func (export "adamw") (param $x i32) (param $g i32) (param $mean i32) (param $square i32) (param $n i32) (param $scale f32)
    (param $rate f32) (param $correction f32) (param $decay f32) (param $b1 f32) (param $b2 f32)
    (local $end i32) (local $v v128) (local $m v128) (local $s v128)
    (local.set $end (i32.add (local.get $x) (i32.shl (local.get $n) (i32.const 2))))
    (loop $each
      (local.set $v (f32x4.mul (v128.load (local.get $g)) (f32x4.splat (local.get $scale))))
      (local.set $m (f32x4.add (f32x4.mul (v128.load (local.get $mean)) (f32x4.splat (local.get $b1)))
        (f32x4.mul (local.get $v) (f32x4.splat (f32.sub (f32.const 1) (local.get $b1))))))
      (local.set $s (f32x4.add (f32x4.mul (v128.load (local.get $square)) (f32x4.splat (local.get $b2)))
        (f32x4.mul (f32x4.mul (local.get $v) (local.get $v)) (f32x4.splat (f32.sub (f32.const 1) (local.get $b2))))))
      (v128.store (local.get $mean) (local.get $m))
      (v128.store (local.get $square) (local.get $s))
      (v128.store (local.get $x) (f32x4.sub (f32x4.mul (v128.load (local.get $x)) (f32x4.splat (local.get $decay)))
        (f32x4.div (f32x4.mul (local.get $m) (f32x4.splat (local.get $rate)))
          (f32x4.add (f32x4.sqrt (f32x4.mul (local.get $s) (f32x4.splat (local.get $correction))))
            (f32x4.splat (f32.const 1e-8))))))
      (local.set $g (i32.add (local.get $g) (i32.const 16)))
      (local.set $mean (i32.add (local.get $mean) (i32.const 16)))
      (local.set $square (i32.add (local.get $square) (i32.const 16)))
      (br_if $each (i32.lt_u (local.tee $x (i32.add (local.get $x) (i32.const 16))) (local.get $end))))))
