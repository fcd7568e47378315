//! The tile unit of recent Intel processors (AMX): eight registers of 16 rows × 64 bytes, and products of them.
//!
//! The compiler has no stable names for the instructions, but its assembler knows them. The unit has to be asked for
//! once in a process, and configured on each thread before use.

#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
pub(crate) use elsewhere::{Amx, Tiles};
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
pub(crate) use linux::{Amx, Tiles};

/// Rows of a tile, and pairs of bf16 or groups of four int8 in a row.
pub(crate) const TILE: usize = 16;
/// Columns that are packed together: two tiles.
pub(crate) const PANEL: usize = 2 * TILE;

/// Where the sum of a row and a column is in a block of sums that has so many rows. They lie tile by tile, so that only the sixteen
/// columns of a tile are side by side: a tile of sixteen rows that are far from each other takes longer to store and to load again.
#[inline(always)]
pub(crate) const fn sum_at<const ROWS: usize>(row: usize, column: usize) -> usize {
    column / TILE * (ROWS * TILE) + row * TILE + column % TILE
}

/// The bytes of two tiles.
pub(crate) type TwoTiles = [[u8; 1024]; 2];

/// A product of a tile of rows by a panel of columns, `steps` tiles long, added to or stored in a block of 16 × 32 sums, and what
/// is fetched meanwhile.
#[cfg_attr(
    not(all(target_arch = "x86_64", target_os = "linux")),
    expect(dead_code, reason = "there is no product of tiles without them")
)]
pub(crate) struct Product<T, Sum> {
    /// 16 rows of 64 bytes, `a_stride` bytes apart, at each step `a_step` bytes further. Parts of numbers are tiles of their own,
    /// one after the other.
    pub a: *const T,
    pub a_stride: usize,
    pub a_step: usize,
    /// Packed columns: for each step two tiles of 1 KiB, or three times as many if they are in three parts.
    pub b: *const T,
    pub steps: usize,
    /// Sums of 16 rows and 32 columns, each in its place ([`sum_at`]), taken as zero at the start with `first`.
    pub c: *mut Sum,
    pub first: bool,
    /// Columns that come next, two cache lines for each step and part of them. They need not be valid.
    pub next_columns: *const u8,
    /// The same of rows.
    pub next_rows: *const u8,
}

/// What is multiplied in blocks of two by two tiles: 32 rows, which stay in the first cache, with a panel of columns that streams
/// past.
#[derive(Clone, Copy)]
#[cfg_attr(
    not(all(target_arch = "x86_64", target_os = "linux")),
    expect(dead_code, reason = "there is no product of tiles without them")
)]
pub(crate) struct TwoByTwo<T, Sum> {
    pub a: Pair<T>,
    /// Where the rows are stored as well, on their way through the registers, if they are to lie closer together for the products
    /// after this one ([`Pair::copied`]).
    pub copy: Option<*mut T>,
    /// As in a [`Product`].
    pub b: *const T,
    pub steps: usize,
    /// Sums of 32 rows and 32 columns, each in its place ([`sum_at`]), taken as zero at the start with `first`.
    pub c: *mut Sum,
    pub first: bool,
    /// Where the sums of the product before go to, if there was one.
    pub before: Option<*mut Sum>,
}

/// Twice 16 rows of 64 bytes, `stride` bytes apart, at each step `step` bytes further.
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
    /// The rows of a product that stored them here: for each step two tiles of 1 KiB.
    #[inline(always)]
    pub(crate) fn copied(at: *const T) -> Pair<T> {
        Pair { upper: at, lower: at.wrapping_byte_add(1024), stride: 64, step: 2048 }
    }
}

/// What comes later and is fetched meanwhile: at each step four cache lines, so many bytes from each other, and the next four so
/// many bytes further. They need not be valid.
#[derive(Clone, Copy)]
#[cfg_attr(
    not(all(target_arch = "x86_64", target_os = "linux")),
    expect(dead_code, reason = "there is no product of tiles without them")
)]
pub(crate) struct Ahead {
    pub first: *const u8,
    pub apart: usize,
    pub step: usize,
}

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod linux {
    use super::{Ahead, PANEL, Pair, Product, TwoByTwo, TwoTiles};
    use crate::simd::fetch;
    use std::arch::asm;
    use std::arch::x86_64::{__cpuid, __cpuid_count};
    use std::cell::Cell;
    use std::marker::PhantomData;
    use std::sync::OnceLock;

    /// Proof that the processor has tiles with products of bf16, and that the system lets us use them.
    #[derive(Clone, Copy)]
    pub(crate) struct Amx(());

    impl Amx {
        /// The token, where the processor has the unit and the system permits its use.
        pub(crate) fn detect() -> Option<Amx> {
            static PRESENT: OnceLock<bool> = OnceLock::new();
            PRESENT.get_or_init(|| has_tiles() && permitted()).then_some(Amx(()))
        }

        /// The token without asking again.
        ///
        /// # Safety
        /// [`Amx::detect`] must have succeeded.
        pub(crate) unsafe fn assume() -> Amx {
            Amx(())
        }

        /// Configures this thread's tiles as 16 rows of 64 bytes until the result is dropped. A thread has one set of
        /// them: it cannot ask again before that.
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

    /// Bits 22 to 25 of what the processor says about itself: products of bf16, the tiles, products of int8.
    fn has_tiles() -> bool {
        const NEEDED: u32 = 1 << 22 | 1 << 24 | 1 << 25;
        __cpuid(0).eax >= 7 && __cpuid_count(7, 0).edx & NEEDED == NEEDED
    }

    /// Asks the system for the right to use tile data, which it grants to the whole process.
    fn permitted() -> bool {
        const REQUEST_PERMISSION: libc::c_long = 0x1023;
        const TILE_DATA: libc::c_long = 18;
        // Safety: a system call that changes nothing but this permission.
        unsafe { libc::syscall(libc::SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) == 0 }
    }

    thread_local! {
        static IN_USE: Cell<bool> = const { Cell::new(false) };
    }

    /// Configured tiles of one thread, which they cannot leave; dropping them gives the registers back.
    pub(crate) struct Tiles(PhantomData<*mut ()>);

    impl Drop for Tiles {
        fn drop(&mut self) {
            // Safety: the unit is there and configured by this thread.
            unsafe { asm!("tilerelease", options(nostack)) };
            IN_USE.set(false);
        }
    }

    impl Tiles {
        /// Fetches `rows` rows of `bytes` bytes, `stride` bytes apart, in order to write to them: what a product is finished to
        /// comes while it is computed. They need not be valid.
        #[inline(always)]
        pub(crate) fn fetch_to_write(&self, first: *const u8, stride: usize, rows: usize, bytes: usize) {
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

        /// Fetches `bytes` bytes of a row that is written after four others, `stride` bytes apart, of which `row` is the first. Rows
        /// of a power of two fall into one set of the first cache, which has room for a few of them only.
        #[inline(always)]
        pub(crate) fn fetch_row_to_write(&self, row: *const u8, stride: usize, bytes: usize) {
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

    /// What the unit can do at best with one type of elements.
    macro_rules! busy {
        ($name:ident, $product:literal) => {
            impl Tiles {
                /// Four products in each of `turns` turns, of two tiles of numbers: what the unit can do at best.
                pub(crate) fn $name(&self, turns: usize, numbers: &TwoTiles) {
                    assert!(turns > 0);
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
                            "dec {turns}",
                            "jnz 2b",
                            turns = inout(reg) turns => _,
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

    /// The first product of a tile of rows with the columns in `tmm6`: the sums of the product before are stored, and the new ones
    /// begin.
    macro_rules! first_step {
        ($product:literal, $rows:literal, $sums:tt, $at:literal, $before:ident, $c:ident, $first:ident) => {
            if let Some(before) = $before {
                asm!(
                    concat!("tilestored [{c} + {row}", $at, "], ", $sums),
                    c = in(reg) before,
                    row = in(reg) 64usize,
                    options(nostack, preserves_flags),
                );
            }
            if $first {
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

    /// The [`Product`]s of one type of elements, in so many parts, by the assembly of a step: it adds to `tmm0` and `tmm1`.
    ///
    /// A step takes four registers, or five.
    macro_rules! multiply {
        ($(#[$doc:meta])* $name:ident, $element:ty, $parts:literal, $sum:ty, $step:expr) => {
            impl Tiles {
                $(#[$doc])*
                ///
                /// After each step `between` is called: the tile unit works on its own, and a little more hardly takes time.
                ///
                /// # Safety
                /// All operands must be valid to read, and sums to write; `between` must leave the tiles alone.
                #[inline(always)]
                pub(crate) unsafe fn $name(
                    &self,
                    product: Product<$element, $sum>,
                    mut between: impl FnMut(),
                ) {
                    let Product { a_stride, a_step, steps, c, first, .. } = product;
                    let Product { mut a, mut b, mut next_columns, mut next_rows, .. } = product;
                    debug_assert!(steps > 0 && a.addr() % 64 == 0 && b.addr() % 64 == 0 && c.addr() % 64 == 0);
                    const { assert!(PANEL * 4 == 2 * 64) };
                    // Safety: the caller's promise; the tiles are configured as long as `self` lives. They keep what they hold from
                    // one piece of assembly to the next. The language does not promise that of registers, but no compiled code
                    // touches these: the feature is not enabled anywhere, and `between` leaves them alone.
                    unsafe {
                        if first {
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
                                fetch(next_columns.wrapping_add(line * 64));
                                fetch(next_rows.wrapping_add(line * 64));
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
                /// in blocks of two by two tiles: four tiles are loaded for four products, where a [`Product`] loads six. Loads are what takes
                /// most of the time, above all when a neighbour keeps the other half of the core busy.
                ///
                /// Rows are to stay in the first cache. Columns are loaded with the hint that they will not be needed again soon, without
                /// which they would drive the rows out.
                ///
                /// The sums stay in the tiles. Those of the product before this one, if there was one, are stored to their block before the
                /// first products of this one need their registers, so that the unit has something to do meanwhile; those of the last one by
                /// [`Self::store_two_by_two`]. `between` is called after each step but the first.
                ///
                /// # Safety
                /// As for [`Self::multiply_bf16`], with 32 rows and 32 × 32 sums. If there is a block `before`, it must be valid to write,
                /// and the last thing that these tiles were used for must be the product whose sums belong there. If there is a place for a
                /// copy, it must be valid to write, 2 KiB for each step, and apart from operands and sums.
                #[inline(always)]
                pub(crate) unsafe fn $name<const FETCHES: usize>(
                    &self,
                    product: TwoByTwo<$element, $sum>,
                    mut ahead: [Ahead; FETCHES],
                    mut between: impl FnMut(),
                ) {
                    let TwoByTwo { a, mut copy, mut b, steps, c, first, before } = product;
                    let Pair { mut upper, mut lower, stride, step } = a;
                    debug_assert!(steps > 0 && upper.addr() % 64 == 0 && lower.addr() % 64 == 0);
                    debug_assert!(b.addr() % 64 == 0 && c.addr() % 64 == 0);
                    let end = b.wrapping_byte_add(steps * 2048);
                    // Safety: as in the other products.
                    unsafe {
                        load_tile!("tileloadd", "tmm4", upper, stride);
                        load_tile!("tileloaddt1", "tmm6", b, 64usize);
                        first_step!($product, "tmm4", "tmm0", "", before, c, first);
                        load_tile!("tileloadd", "tmm5", lower, stride);
                        first_step!($product, "tmm5", "tmm1", " + 1024", before, c, first);
                        load_tile!("tileloaddt1", "tmm6", b.wrapping_byte_add(1024), 64usize);
                        first_step!($product, "tmm4", "tmm2", " + 2048", before, c, first);
                        first_step!($product, "tmm5", "tmm3", " + 3072", before, c, first);
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
                            for ahead in &mut ahead {
                                for line in 0..4 {
                                    fetch(ahead.first.wrapping_add(line * ahead.apart));
                                }
                                ahead.first = ahead.first.wrapping_add(ahead.step);
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
        /// Stores the sums of the last product in blocks of two by two tiles.
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

    /// Rows stream past, columns stay in the first cache.
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
        /// Products of pairs of numbers in two parts of bf16, the second in a tile behind the first, and pairs of bf16.
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
        /// Products of pairs of numbers in three parts of bf16 each, the least last, into sums of f32: of the nine products of parts
        /// the six that an f32 could tell. Eleven tiles are loaded for twelve products, so that the unit rarely waits.
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

/// A token that cannot exist, for other processors and systems.
#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
mod elsewhere {
    use super::{Ahead, Product, TwoByTwo, TwoTiles};

    /// Never had here.
    #[derive(Clone, Copy)]
    pub(crate) enum Amx {}
    /// Never had here.
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
        pub(crate) fn busy_bf16(&self, _turns: usize, _numbers: &TwoTiles) {
            match *self {}
        }
        pub(crate) fn busy_int8(&self, _turns: usize, _numbers: &TwoTiles) {
            match *self {}
        }
        pub(crate) fn fetch_to_write(&self, _first: *const u8, _stride: usize, _rows: usize, _bytes: usize) {
            match *self {}
        }
        pub(crate) fn fetch_row_to_write(&self, _row: *const u8, _stride: usize, _bytes: usize) {
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
        pub(crate) unsafe fn multiply_two_by_two<const FETCHES: usize>(
            &self,
            _: TwoByTwo<half::bf16, f32>,
            _: [Ahead; FETCHES],
            _between: impl FnMut(),
        ) {
            match *self {}
        }
        pub(crate) unsafe fn multiply_two_by_two_int8<const FETCHES: usize>(
            &self,
            _: TwoByTwo<i8, i32>,
            _: [Ahead; FETCHES],
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
