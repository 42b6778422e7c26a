;; Matrix products in WebAssembly, four numbers at a time: y = x w^T.
;;
;; x is (T, K) and y is (T, N), both row-major; T is a multiple of 4 and N of 8. w is (N, K) in groups of 8 interleaved
;; rows, so that 8 columns of y are computed together. A block of 4 rows and 8 columns stays in 8
;; registers. All numbers are float32, all addresses are in bytes.
(module
  (memory (export "memory") 1)
  (func (export "multiply") (param $x i32) (param $w i32) (param $y i32) (param $T i32) (param $K i32) (param $N i32)
    (local $row i32)     ;; bytes in a row of x
    (local $out i32)     ;; bytes in a row of y
    (local $ends i32)    ;; end of y's first row
    (local $left i32) (local $end i32) (local $right i32) (local $t i32) (local $o i32)
    (local $u v128) (local $v v128) (local $s v128)
    (local $a0 v128) (local $a1 v128) (local $b0 v128) (local $b1 v128)
    (local $c0 v128) (local $c1 v128) (local $d0 v128) (local $d1 v128)
    (local.set $row (i32.shl (local.get $K) (i32.const 2)))
    (local.set $out (i32.shl (local.get $N) (i32.const 2)))
    (local.set $ends (i32.add (local.get $y) (local.get $out)))
    (loop $columns
      (local.set $left (local.get $x))
      (local.set $o (local.get $y))
      (local.set $t (local.get $T))
      (loop $rows
        (local.set $a0 (v128.const i32x4 0 0 0 0)) (local.set $a1 (local.get $a0))
        (local.set $b0 (local.get $a0)) (local.set $b1 (local.get $a0))
        (local.set $c0 (local.get $a0)) (local.set $c1 (local.get $a0))
        (local.set $d0 (local.get $a0)) (local.set $d1 (local.get $a0))
        (local.set $right (local.get $w))
        (local.set $end (i32.add (local.get $left) (local.get $row)))
        (loop $sum
          (local.set $u (v128.load (local.get $right)))
          (local.set $v (v128.load offset=16 (local.get $right)))
          (local.set $s (v128.load32_splat (local.get $left)))
          (local.set $a0 (f32x4.add (local.get $a0) (f32x4.mul (local.get $s) (local.get $u))))
          (local.set $a1 (f32x4.add (local.get $a1) (f32x4.mul (local.get $s) (local.get $v))))
          (local.set $s (v128.load32_splat (i32.add (local.get $left) (local.get $row))))
          (local.set $b0 (f32x4.add (local.get $b0) (f32x4.mul (local.get $s) (local.get $u))))
          (local.set $b1 (f32x4.add (local.get $b1) (f32x4.mul (local.get $s) (local.get $v))))
          (local.set $s (v128.load32_splat (i32.add (local.get $left) (i32.shl (local.get $row) (i32.const 1)))))
          (local.set $c0 (f32x4.add (local.get $c0) (f32x4.mul (local.get $s) (local.get $u))))
          (local.set $c1 (f32x4.add (local.get $c1) (f32x4.mul (local.get $s) (local.get $v))))
          (local.set $s (v128.load32_splat
            (i32.add (i32.add (local.get $left) (local.get $row)) (i32.shl (local.get $row) (i32.const 1)))))
          (local.set $d0 (f32x4.add (local.get $d0) (f32x4.mul (local.get $s) (local.get $u))))
          (local.set $d1 (f32x4.add (local.get $d1) (f32x4.mul (local.get $s) (local.get $v))))
          (local.set $right (i32.add (local.get $right) (i32.const 32)))
          (local.set $left (i32.add (local.get $left) (i32.const 4)))
          (br_if $sum (i32.lt_u (local.get $left) (local.get $end))))
        (v128.store (local.get $o) (local.get $a0))
        (v128.store offset=16 (local.get $o) (local.get $a1))
        (local.set $o (i32.add (local.get $o) (local.get $out)))
        (v128.store (local.get $o) (local.get $b0))
        (v128.store offset=16 (local.get $o) (local.get $b1))
        (local.set $o (i32.add (local.get $o) (local.get $out)))
        (v128.store (local.get $o) (local.get $c0))
        (v128.store offset=16 (local.get $o) (local.get $c1))
        (local.set $o (i32.add (local.get $o) (local.get $out)))
        (v128.store (local.get $o) (local.get $d0))
        (v128.store offset=16 (local.get $o) (local.get $d1))
        (local.set $o (i32.add (local.get $o) (local.get $out)))
        ;; left is at the second row of the block; the next block starts three rows later
        (local.set $left
          (i32.add (i32.add (local.get $left) (local.get $row)) (i32.shl (local.get $row) (i32.const 1))))
        (br_if $rows (local.tee $t (i32.sub (local.get $t) (i32.const 4)))))
      (local.set $w (i32.add (local.get $w) (i32.shl (local.get $row) (i32.const 3))))
      (local.set $y (i32.add (local.get $y) (i32.const 32)))
      (br_if $columns (i32.lt_u (local.get $y) (local.get $ends))))))
