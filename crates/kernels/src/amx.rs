//! The tile unit of recent Intel processors (AMX): eight registers of 16 rows × 64 bytes, and products of them. `docs/kernels.md`
//! explains it.
//!
//! Rust has no stable intrinsics for the instructions, but its assembler knows them. A process asks the system once for permission,
//! and each thread configures the unit before use.

#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
pub(crate) use elsewhere::{Amx, Tiles};
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
pub(crate) use linux::{Amx, Tiles};

/// Rows of a tile, and pairs of bf16 or groups of four int8 in a row.
pub(crate) const TILE: usize = 16;
/// Columns that are packed together: two tiles.
pub(crate) const PANEL: usize = 2 * TILE;

/// The index of the sum of a row and a column in a block of `ROWS` rows. Blocks are stored tile by tile, because a tile whose rows
/// lie far apart takes longer to store and to load.
#[inline(always)]
pub(crate) const fn sum_at<const ROWS: usize>(row: usize, column: usize) -> usize {
    column / TILE * (ROWS * TILE) + row * TILE + column % TILE
}

/// The bytes of two tiles.
pub(crate) type TwoTiles = [[u8; 1024]; 2];

/// A product of a tile of rows with a panel of columns, `steps` tiles deep, into a block of 16 × 32 sums; and what is prefetched
/// during it.
#[cfg_attr(
    not(all(target_arch = "x86_64", target_os = "linux")),
    expect(dead_code, reason = "there is no product of tiles without them")
)]
pub(crate) struct Product<T, Sum> {
    /// 16 rows of 64 bytes, `a_stride` bytes apart. Each step begins `a_step` bytes behind the one before. Parts of numbers are
    /// tiles of their own, one after the other.
    pub a: *const T,
    pub a_stride: usize,
    pub a_step: usize,
    /// Packed columns: for each step two tiles of 1 KiB, or six if numbers are in three parts.
    pub b: *const T,
    pub steps: usize,
    /// 16 × 32 sums, ordered by [`sum_at`].
    pub c: *mut Sum,
    /// Whether sums start at zero instead of at what `c` holds.
    pub from_zero: bool,
    /// What to prefetch: at each step two cache lines of columns, and two of rows, for each part. The addresses need not be valid.
    pub next_columns: *const u8,
    pub next_rows: *const u8,
}

/// A product of two tiles of rows, which stay in the L1 cache, with a panel of columns, which streams past them, into a block of
/// 32 × 32 sums.
#[derive(Clone, Copy)]
#[cfg_attr(
    not(all(target_arch = "x86_64", target_os = "linux")),
    expect(dead_code, reason = "there is no product of tiles without them")
)]
pub(crate) struct TwoByTwo<T, Sum> {
    pub a: Pair<T>,
    /// Where to store the tiles of rows after loading them, so that the next products find them close together
    /// ([`Pair::copied`]).
    pub copy: Option<*mut T>,
    /// As in a [`Product`].
    pub b: *const T,
    pub steps: usize,
    /// 32 × 32 sums, ordered by [`sum_at`].
    pub c: *mut Sum,
    /// Whether sums start at zero instead of at what `c` holds.
    pub from_zero: bool,
    /// Where to store the sums of the product before this one, which are still in the tiles.
    pub before: Option<*mut Sum>,
}

/// Two tiles of 16 rows of 64 bytes, `stride` bytes apart. Each step begins `step` bytes behind the one before.
#[derive(Clone, Copy)]
#[cfg_attr(
    not(all(target_arch = "x86_64", target_os = "linux")),
    expect(dead_code, reason = "there is no product of tiles without them")
)]
pub(crate) struct Pair<T> {
    pub upper: *const T,
    pub lower: *const T,
    pub stride: usize,
    pub step: usize,
}

impl<T> Pair<T> {
    /// Rows that a product has copied to `at`: for each step two tiles of 1 KiB.
    #[inline(always)]
    pub(crate) fn copied(at: *const T) -> Pair<T> {
        Pair { upper: at, lower: at.wrapping_byte_add(1024), stride: 64, step: 2048 }
    }
}

/// What to prefetch during a product: at each step four cache lines, `line_stride` bytes apart. Each step begins `step` bytes behind
/// the one before. The addresses need not be valid.
#[derive(Clone, Copy)]
#[cfg_attr(
    not(all(target_arch = "x86_64", target_os = "linux")),
    expect(dead_code, reason = "there is no product of tiles without them")
)]
pub(crate) struct Prefetch {
    pub first: *const u8,
    pub line_stride: usize,
    pub step: usize,
}

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod linux {
    use super::{PANEL, Pair, Prefetch, Product, TwoByTwo, TwoTiles};
    use crate::simd::prefetch;
    use std::arch::asm;
    use std::arch::x86_64::{__cpuid, __cpuid_count};
    use std::cell::Cell;
    use std::marker::PhantomData;
    use std::sync::OnceLock;

    /// Proof that the processor has tiles with products of bf16, and that the system lets us use them.
    #[derive(Clone, Copy)]
    pub(crate) struct Amx(());

    impl Amx {
        /// The token, if the processor has the unit and the system permits its use.
        pub(crate) fn detect() -> Option<Amx> {
            static PRESENT: OnceLock<bool> = OnceLock::new();
            PRESENT.get_or_init(|| has_tiles() && permitted()).then_some(Amx(()))
        }

        /// The token without detection.
        ///
        /// # Safety
        /// [`Amx::detect`] must have succeeded.
        pub(crate) unsafe fn assume() -> Amx {
            Amx(())
        }

        /// Configures the tiles of this thread as 16 rows of 64 bytes, until the result is dropped.
        ///
        /// # Panics
        /// If the thread has configured them already.
        pub(crate) fn tiles(self) -> Tiles {
            #[repr(C, align(64))]
            struct Config {
                palette: u8,
                start: u8,
                reserved: [u8; 14],
                row_bytes: [u16; 16],
                rows: [u8; 16],
            }
            let mut config =
                Config { palette: 1, start: 0, reserved: [0; 14], row_bytes: [0; 16], rows: [0; 16] };
            config.row_bytes[..8].fill(64);
            config.rows[..8].fill(16);
            assert!(!IN_USE.replace(true), "the tiles of this thread are in use");
            // Safety: the unit is there, as the token proves, and the configuration is valid for palette 1.
            unsafe { asm!("ldtilecfg [{}]", in(reg) &raw const config, options(nostack)) };
            Tiles(PhantomData)
        }
    }

    /// Whether CPUID reports products of bf16 (bit 22), tiles (24) and products of int8 (25).
    fn has_tiles() -> bool {
        const NEEDED: u32 = 1 << 22 | 1 << 24 | 1 << 25;
        __cpuid(0).eax >= 7 && __cpuid_count(7, 0).edx & NEEDED == NEEDED
    }

    /// Asks Linux for permission to use tile data. It holds for the whole process.
    fn permitted() -> bool {
        const REQUEST_PERMISSION: libc::c_long = 0x1023;
        const TILE_DATA: libc::c_long = 18;
        // Safety: a system call that changes nothing but this permission.
        unsafe { libc::syscall(libc::SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) == 0 }
    }

    thread_local! {
        static IN_USE: Cell<bool> = const { Cell::new(false) };
    }

    /// The configured tiles of a thread. They cannot be sent to another thread; dropping them releases the unit.
    pub(crate) struct Tiles(PhantomData<*mut ()>);

    impl Drop for Tiles {
        fn drop(&mut self) {
            // Safety: the unit is there and configured by this thread.
            unsafe { asm!("tilerelease", options(nostack)) };
            IN_USE.set(false);
        }
    }

    impl Tiles {
        /// Prefetches `rows` rows of `bytes` bytes, `stride` bytes apart, for writing. The addresses need not be valid.
        #[inline(always)]
        pub(crate) fn prefetch_to_write(&self, first: *const u8, stride: usize, rows: usize, bytes: usize) {
            for row in 0..rows {
                for at in (0..bytes).step_by(64) {
                    let line = first.wrapping_add(row * stride + at);
                    // Safety: a hint, which does nothing where there is no memory.
                    unsafe {
                        asm!("prefetchw [{}]", in(reg) line, options(readonly, nostack, preserves_flags))
                    };
                }
            }
        }

        /// Prefetches, for writing, `bytes` bytes of the row four rows behind `row`. Further ahead would be worse: rows whose distance
        /// is a power of two share a set of the L1 cache, which holds only a few of them.
        #[inline(always)]
        pub(crate) fn prefetch_row_to_write(&self, row: *const u8, stride: usize, bytes: usize) {
            for at in (0..bytes).step_by(64) {
                // Safety: a hint, which does nothing where there is no memory.
                unsafe {
                    asm!(
                        "prefetchw [{} + 4 * {}]",
                        in(reg) row.wrapping_add(at),
                        in(reg) stride,
                        options(readonly, nostack, preserves_flags),
                    )
                };
            }
        }
    }

    /// The benchmark of one type of elements.
    macro_rules! busy {
        ($name:ident, $product:literal) => {
            impl Tiles {
                /// Four products in each of `rounds` rounds, with operands in registers: the highest rate of the unit.
                pub(crate) fn $name(&self, rounds: usize, numbers: &TwoTiles) {
                    assert!(rounds > 0);
                    // Safety: the tiles are configured as long as `self` lives; `numbers` are two of them, 16 rows of 64 bytes each.
                    unsafe {
                        asm!(
                            "tilezero tmm0",
                            "tilezero tmm1",
                            "tilezero tmm2",
                            "tilezero tmm3",
                            "tileloadd tmm4, [{numbers} + {row}]",
                            "tileloadd tmm5, [{numbers} + {row} + 1024]",
                            "2:",
                            concat!($product, " tmm0, tmm4, tmm5"),
                            concat!($product, " tmm1, tmm4, tmm5"),
                            concat!($product, " tmm2, tmm4, tmm5"),
                            concat!($product, " tmm3, tmm4, tmm5"),
                            "dec {rounds}",
                            "jnz 2b",
                            rounds = inout(reg) rounds => _,
                            numbers = in(reg) numbers,
                            row = in(reg) 64usize,
                            out("tmm0") _,
                            out("tmm1") _,
                            out("tmm2") _,
                            out("tmm3") _,
                            out("tmm4") _,
                            out("tmm5") _,
                            options(readonly, nostack),
                        );
                    }
                }
            }
        };
    }

    busy!(busy_bf16, "tdpbf16ps");
    busy!(busy_int8, "tdpbssd");

    /// Stores the sums of the product before, starts the sums of this one, and adds the first product of a tile of rows with the
    /// columns in `tmm6`.
    macro_rules! first_product_of_sums {
        ($product:literal, $rows:literal, $sums:tt, $at:literal, $before:ident, $c:ident, $from_zero:ident) => {
            if let Some(before) = $before {
                asm!(
                    concat!("tilestored [{c} + {row}", $at, "], ", $sums),
                    c = in(reg) before,
                    row = in(reg) 64usize,
                    options(nostack, preserves_flags),
                );
            }
            if $from_zero {
                asm!(concat!("tilezero ", $sums), out($sums) _, options(nomem, nostack, preserves_flags));
            } else {
                asm!(
                    concat!("tileloadd ", $sums, ", [{c} + {row}", $at, "]"),
                    c = in(reg) $c,
                    row = in(reg) 64usize,
                    out($sums) _,
                    options(readonly, nostack, preserves_flags),
                );
            }
            asm!(
                concat!($product, " ", $sums, ", ", $rows, ", tmm6"),
                out($sums) _,
                options(nomem, nostack, preserves_flags),
            );
        };
    }

    /// Loads a tile.
    macro_rules! load_tile {
        ($load:literal, $tile:tt, $from:expr, $stride:expr) => {
            asm!(
                concat!($load, " ", $tile, ", [{from} + {stride}]"),
                from = in(reg) $from,
                stride = in(reg) $stride,
                out($tile) _,
                options(readonly, nostack, preserves_flags),
            )
        };
    }

    /// A [`Product`] of one type of elements, in `$parts` parts. `$step` is the assembly of a step: it adds to `tmm0` and `tmm1`, and
    /// may use `tmm2` to `tmm4`.
    macro_rules! multiply {
        ($(#[$doc:meta])* $name:ident, $element:ty, $parts:literal, $sum:ty, $step:expr) => {
            impl Tiles {
                $(#[$doc])*
                ///
                /// `between` is called after each step. The tile unit works on its own, so a few instructions there take hardly any time.
                ///
                /// # Safety
                /// All operands must be valid to read, and sums to write; `between` must leave the tiles alone.
                #[inline(always)]
                pub(crate) unsafe fn $name(
                    &self,
                    product: Product<$element, $sum>,
                    mut between: impl FnMut(),
                ) {
                    let Product { a_stride, a_step, steps, c, from_zero, .. } = product;
                    let Product { mut a, mut b, mut next_columns, mut next_rows, .. } = product;
                    debug_assert!(steps > 0 && a.addr() % 64 == 0 && b.addr() % 64 == 0 && c.addr() % 64 == 0);
                    const { assert!(PANEL * 4 == 2 * 64) };
                    // Safety: the caller's promise; the tiles are configured as long as `self` lives. They keep their contents from one
                    // piece of assembly to the next. The language does not promise that of registers, but no compiled code uses these:
                    // the feature is not enabled anywhere, and `between` leaves them alone.
                    unsafe {
                        if from_zero {
                            asm!(
                                "tilezero tmm0",
                                "tilezero tmm1",
                                out("tmm0") _,
                                out("tmm1") _,
                                options(nomem, nostack, preserves_flags),
                            );
                        } else {
                            asm!(
                                "tileloadd tmm0, [{c} + {row}]",
                                "tileloadd tmm1, [{c} + {row} + 1024]",
                                c = in(reg) c,
                                row = in(reg) 64usize,
                                out("tmm0") _,
                                out("tmm1") _,
                                options(readonly, nostack, preserves_flags),
                            );
                        }
                        let end = b.wrapping_byte_add(steps * $parts * 2048);
                        while b != end {
                            asm!(
                                $step,
                                a = in(reg) a,
                                a_stride = in(reg) a_stride,
                                row = in(reg) 64usize,
                                b = in(reg) b,
                                out("tmm0") _,
                                out("tmm1") _,
                                out("tmm2") _,
                                out("tmm3") _,
                                out("tmm4") _,
                                options(readonly, nostack, preserves_flags),
                            );
                            for line in 0..2 * $parts {
                                prefetch(next_columns.wrapping_add(line * 64));
                                prefetch(next_rows.wrapping_add(line * 64));
                            }
                            between();
                            a = a.wrapping_byte_add(a_step);
                            b = b.wrapping_byte_add($parts * 2048);
                            next_columns = next_columns.wrapping_add($parts * 128);
                            next_rows = next_rows.wrapping_add($parts * 128);
                        }
                        asm!(
                            "tilestored [{c} + {row}], tmm0",
                            "tilestored [{c} + {row} + 1024], tmm1",
                            c = in(reg) c,
                            row = in(reg) 64usize,
                            options(nostack, preserves_flags),
                        );
                    }
                }
            }
        };
    }

    /// Products of one type of elements in blocks of two by two tiles.
    macro_rules! two_by_two {
        ($(#[$doc:meta])* $name:ident, $element:ty, $sum:ty, $product:literal) => {
            impl Tiles {
                $(#[$doc])*
                /// in blocks of two by two tiles: four loads for four products, where a [`Product`] has six. Loads take most of the
                /// time, above all when another thread uses the other half of the core.
                ///
                /// Columns are loaded with the hint that they are not needed again soon. Without it they would drive the rows out of
                /// the L1 cache.
                ///
                /// The sums stay in the tiles. The next product stores them just before it needs their registers, so that the unit
                /// stays busy; [`Self::store_two_by_two`] stores those of the last product. `between` is called after each step but
                /// the first.
                ///
                /// # Safety
                /// As for [`Self::multiply_bf16`], with 32 rows and 32 × 32 sums. `before`, if it is given, must be valid to write, and the
                /// tiles must not have been used since the product whose sums belong there. `copy`, if it is given, must be valid to write,
                /// 2 KiB for each step, and must not overlap operands and sums.
                #[inline(always)]
                pub(crate) unsafe fn $name<const PREFETCHES: usize>(
                    &self,
                    product: TwoByTwo<$element, $sum>,
                    mut prefetches: [Prefetch; PREFETCHES],
                    mut between: impl FnMut(),
                ) {
                    let TwoByTwo { a, mut copy, mut b, steps, c, from_zero, before } = product;
                    let Pair { mut upper, mut lower, stride, step } = a;
                    debug_assert!(steps > 0 && upper.addr() % 64 == 0 && lower.addr() % 64 == 0);
                    debug_assert!(b.addr() % 64 == 0 && c.addr() % 64 == 0);
                    let end = b.wrapping_byte_add(steps * 2048);
                    // Safety: as in the other products.
                    unsafe {
                        load_tile!("tileloadd", "tmm4", upper, stride);
                        load_tile!("tileloaddt1", "tmm6", b, 64usize);
                        first_product_of_sums!($product, "tmm4", "tmm0", "", before, c, from_zero);
                        load_tile!("tileloadd", "tmm5", lower, stride);
                        first_product_of_sums!($product, "tmm5", "tmm1", " + 1024", before, c, from_zero);
                        load_tile!("tileloaddt1", "tmm6", b.wrapping_byte_add(1024), 64usize);
                        first_product_of_sums!($product, "tmm4", "tmm2", " + 2048", before, c, from_zero);
                        first_product_of_sums!($product, "tmm5", "tmm3", " + 3072", before, c, from_zero);
                        loop {
                            if let Some(to) = &mut copy {
                                asm!(
                                    "tilestored [{to} + {row}], tmm4",
                                    "tilestored [{to} + {row} + 1024], tmm5",
                                    to = in(reg) *to,
                                    row = in(reg) 64usize,
                                    options(nostack, preserves_flags),
                                );
                                *to = to.wrapping_byte_add(2048);
                            }
                            for next in &mut prefetches {
                                for line in 0..4 {
                                    prefetch(next.first.wrapping_add(line * next.line_stride));
                                }
                                next.first = next.first.wrapping_add(next.step);
                            }
                            upper = upper.wrapping_byte_add(step);
                            lower = lower.wrapping_byte_add(step);
                            b = b.wrapping_byte_add(2048);
                            if b == end {
                                break;
                            }
                            asm!(
                                "tileloadd tmm4, [{upper} + {stride}]",
                                "tileloaddt1 tmm6, [{b} + {row}]",
                                concat!($product, " tmm0, tmm4, tmm6"),
                                "tileloadd tmm5, [{lower} + {stride}]",
                                concat!($product, " tmm1, tmm5, tmm6"),
                                "tileloaddt1 tmm6, [{b} + {row} + 1024]",
                                concat!($product, " tmm2, tmm4, tmm6"),
                                concat!($product, " tmm3, tmm5, tmm6"),
                                upper = in(reg) upper,
                                lower = in(reg) lower,
                                stride = in(reg) stride,
                                row = in(reg) 64usize,
                                b = in(reg) b,
                                out("tmm0") _,
                                out("tmm1") _,
                                out("tmm2") _,
                                out("tmm3") _,
                                out("tmm4") _,
                                out("tmm5") _,
                                out("tmm6") _,
                                options(readonly, nostack, preserves_flags),
                            );
                            between();
                        }
                    }
                }
            }
        };
    }

    two_by_two!(
        /// Products of pairs of bf16 into sums of f32,
        multiply_two_by_two,
        half::bf16,
        f32,
        "tdpbf16ps"
    );

    two_by_two!(
        /// Products of groups of four int8 into sums of int32,
        multiply_two_by_two_int8,
        i8,
        i32,
        "tdpbssd"
    );

    impl Tiles {
        /// Stores the sums of the last product of two by two tiles.
        ///
        /// # Safety
        /// The block must be valid to write, and the tiles must not have been used for anything since.
        #[inline(always)]
        pub(crate) unsafe fn store_two_by_two<Sum>(&self, c: *mut Sum) {
            // Safety: the caller's promise; the tiles are configured as long as `self` lives.
            unsafe {
                asm!(
                    "tilestored [{c} + {row}], tmm0",
                    "tilestored [{c} + {row} + 1024], tmm1",
                    "tilestored [{c} + {row} + 2048], tmm2",
                    "tilestored [{c} + {row} + 3072], tmm3",
                    c = in(reg) c,
                    row = in(reg) 64usize,
                    options(nostack, preserves_flags),
                );
            }
        }
    }

    /// A step with rows that stream past columns in the L1 cache.
    macro_rules! step {
        ($product:literal) => {
            concat!(
                "tileloaddt1 tmm2, [{a} + {a_stride}]\n",
                "tileloadd tmm3, [{b} + {row}]\n",
                $product,
                " tmm0, tmm2, tmm3\n",
                "tileloadd tmm3, [{b} + {row} + 1024]\n",
                $product,
                " tmm1, tmm2, tmm3",
            )
        };
    }

    multiply!(
        /// Products of pairs of bf16 into sums of f32.
        multiply_bf16,
        half::bf16,
        1,
        f32,
        step!("tdpbf16ps")
    );

    multiply!(
        /// Products of groups of four int8 into sums of int32.
        multiply_int8,
        i8,
        1,
        i32,
        step!("tdpbssd")
    );

    multiply!(
        /// Products of rows in two parts of bf16, the second in the tile behind the first, with columns of bf16.
        multiply_two_parts,
        half::bf16,
        1,
        f32,
        concat!(
            "tileloadd tmm2, [{a} + {a_stride}]\n",
            "tileloadd tmm3, [{b} + {row}]\n",
            "tdpbf16ps tmm0, tmm2, tmm3\n",
            "tileloadd tmm4, [{a} + {a_stride} + 1024]\n",
            "tdpbf16ps tmm0, tmm4, tmm3\n",
            "tileloadd tmm3, [{b} + {row} + 1024]\n",
            "tdpbf16ps tmm1, tmm2, tmm3\n",
            "tdpbf16ps tmm1, tmm4, tmm3",
        )
    );

    multiply!(
        /// Products of numbers in three parts of bf16 each, the smallest last, into sums of f32. Of the nine products of parts, these are
        /// the six that are large enough for a sum in f32. Eleven tiles are loaded for twelve products, so that the unit rarely waits.
        multiply_parts,
        half::bf16,
        3,
        f32,
        concat!(
            "tileloaddt1 tmm2, [{a} + {a_stride} + 2048]\n",
            "tileloadd tmm3, [{b} + {row}]\n",
            "tdpbf16ps tmm0, tmm2, tmm3\n",
            "tileloadd tmm4, [{b} + {row} + 3072]\n",
            "tdpbf16ps tmm1, tmm2, tmm4\n",
            "tileloaddt1 tmm2, [{a} + {a_stride} + 1024]\n",
            "tdpbf16ps tmm0, tmm2, tmm3\n",
            "tdpbf16ps tmm1, tmm2, tmm4\n",
            "tileloadd tmm3, [{b} + {row} + 1024]\n",
            "tdpbf16ps tmm0, tmm2, tmm3\n",
            "tileloadd tmm4, [{b} + {row} + 4096]\n",
            "tdpbf16ps tmm1, tmm2, tmm4\n",
            "tileloaddt1 tmm2, [{a} + {a_stride}]\n",
            "tdpbf16ps tmm0, tmm2, tmm3\n",
            "tdpbf16ps tmm1, tmm2, tmm4\n",
            "tileloadd tmm3, [{b} + {row} + 2048]\n",
            "tdpbf16ps tmm0, tmm2, tmm3\n",
            "tileloadd tmm4, [{b} + {row} + 5120]\n",
            "tdpbf16ps tmm1, tmm2, tmm4\n",
            "tileloadd tmm3, [{b} + {row}]\n",
            "tdpbf16ps tmm0, tmm2, tmm3\n",
            "tileloadd tmm4, [{b} + {row} + 3072]\n",
            "tdpbf16ps tmm1, tmm2, tmm4",
        )
    );
}

/// Tokens that cannot exist, for other processors and systems.
#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
mod elsewhere {
    use super::{Prefetch, Product, TwoByTwo, TwoTiles};

    /// Has no value here.
    #[derive(Clone, Copy)]
    pub(crate) enum Amx {}
    /// Has no value here.
    pub(crate) enum Tiles {}

    impl Amx {
        pub(crate) fn detect() -> Option<Amx> {
            None
        }
        pub(crate) unsafe fn assume() -> Amx {
            unreachable!("no tiles on this system")
        }
        pub(crate) fn tiles(self) -> Tiles {
            match self {}
        }
    }

    impl Tiles {
        pub(crate) fn busy_bf16(&self, _rounds: usize, _numbers: &TwoTiles) {
            match *self {}
        }
        pub(crate) fn busy_int8(&self, _rounds: usize, _numbers: &TwoTiles) {
            match *self {}
        }
        pub(crate) fn prefetch_to_write(
            &self,
            _first: *const u8,
            _stride: usize,
            _rows: usize,
            _bytes: usize,
        ) {
            match *self {}
        }
        pub(crate) fn prefetch_row_to_write(&self, _row: *const u8, _stride: usize, _bytes: usize) {
            match *self {}
        }
        pub(crate) unsafe fn multiply_bf16(&self, _: Product<half::bf16, f32>, _between: impl FnMut()) {
            match *self {}
        }
        pub(crate) unsafe fn multiply_int8(&self, _: Product<i8, i32>, _between: impl FnMut()) {
            match *self {}
        }
        pub(crate) unsafe fn multiply_two_parts(&self, _: Product<half::bf16, f32>, _between: impl FnMut()) {
            match *self {}
        }
        pub(crate) unsafe fn multiply_parts(&self, _: Product<half::bf16, f32>, _between: impl FnMut()) {
            match *self {}
        }
        pub(crate) unsafe fn multiply_two_by_two<const PREFETCHES: usize>(
            &self,
            _: TwoByTwo<half::bf16, f32>,
            _: [Prefetch; PREFETCHES],
            _between: impl FnMut(),
        ) {
            match *self {}
        }
        pub(crate) unsafe fn multiply_two_by_two_int8<const PREFETCHES: usize>(
            &self,
            _: TwoByTwo<i8, i32>,
            _: [Prefetch; PREFETCHES],
            _between: impl FnMut(),
        ) {
            match *self {}
        }
        pub(crate) unsafe fn store_two_by_two<Sum>(&self, _: *mut Sum) {
            match *self {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::catch_unwind;

    #[test]
    fn a_thread_has_its_tiles_once_at_a_time() {
        let Some(amx) = Amx::detect() else { return };
        let tiles = amx.tiles();
        assert!(catch_unwind(|| drop(amx.tiles())).is_err());
        std::thread::spawn(move || drop(amx.tiles())).join().expect("another thread has its own");
        drop(tiles);
        drop(amx.tiles());
    }
}
