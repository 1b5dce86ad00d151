;; A core module of the world portside:tool/sandboxed-tool; tests fill in what each guest does.
;; `wasm-tools component embed` and `new` make the component of it.
(module
  $imports
  (memory (export "memory") $memory)
  (global $$free (mut i32) (i32.const 65536))
  (data (i32.const 4096) "$schema")
  $declarations
  (func (export "cabi_realloc") (param $$old i32) (param $$old_size i32) (param $$align i32) (param $$size i32)
    (result i32) (local $$at i32) (local $$end i32)
    (local.set $$at (i32.and (i32.add (global.get $$free) (i32.const 15)) (i32.const -16)))
    (local.set $$end (i32.add (local.get $$at) (local.get $$size)))
    (if (i32.gt_u (local.get $$end) (i32.shl (memory.size) (i32.const 16)))
      (then (drop (memory.grow (i32.add (i32.const 1) (i32.shr_u (local.get $$size) (i32.const 16)))))))
    (global.set $$free (local.get $$end))
    (local.get $$at))
  ;; A response whose output is `$$len` bytes at `$$at`.
  (func $$answer (param $$at i32) (param $$len i32) (result i32)
    (i32.store (i32.const 16) (i32.const 1))
    (i32.store (i32.const 20) (local.get $$at))
    (i32.store (i32.const 24) (local.get $$len))
    (i32.store (i32.const 28) (i32.const 0))
    (i32.const 16))
  ;; A response whose output is one decimal digit.
  (func $$digit (param $$value i32) (result i32)
    (i32.store8 (i32.const 48) (i32.add (i32.const 48) (local.get $$value)))
    (call $$answer (i32.const 48) (i32.const 1)))
  (func (export "portside:tool/tool@1.0.0#execute")
    (param $$params i32) (param $$len i32) (param $$has i32) (param $$context i32) (param $$context_len i32)
    (result i32)
    $execute)
  (func (export "portside:tool/tool@1.0.0#schema") (result i32)
    $before_schema
    (i32.store (i32.const 8) (i32.const 4096))
    (i32.store (i32.const 12) (i32.const $schema_bytes))
    (i32.const 8))
  (func (export "portside:tool/tool@1.0.0#description") (result i32)
    (i32.store (i32.const 8) (i32.const 4096))
    (i32.store (i32.const 12) (i32.const $description_bytes))
    (i32.const 8))
)
