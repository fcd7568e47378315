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
/// Columns of a block of sums, which is a tile of rows by two tiles of columns.
pub(crate) const PANEL: usize = 2 * TILE;

/// What is fetched while a product is computed, at each step. None of it has to be valid.
#[derive(Clone, Copy)]
#[cfg_attr(
    not(all(target_arch = "x86_64", target_os = "linux")),
    expect(dead_code, reason = "nothing is fetched without tiles")
)]
pub(crate) struct Ahead {
    /// A cache line that will be written; the next one is `write_step` bytes further.
    pub write: *const u8,
    pub write_step: usize,
    /// Two cache lines of the columns that come next, one after the other.
    pub columns: *const u8,
    /// The same of rows.
    pub rows: *const u8,
}

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod linux {
    use super::{Ahead, PANEL};
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
    }

    /// The product of a tile of rows by two tiles of columns, `steps` tiles long, added to or stored in a block of 16 × 32
    /// sums.
    ///
    /// It takes four registers. Two by two tiles in eight registers would save a load in three; but at times, presumably when a
    /// neighbour keeps the other half of the core busy, the unit has so few registers behind those that it shows that a loop
    /// stalls the more the more of them it uses: with eight a product then takes twice as long as with four, and at other times
    /// it is as fast either way.
    macro_rules! multiply {
        ($(#[$doc:meta])* $name:ident, $busy:ident, $element:ty, $sum:ty, $product:literal) => {
            impl Tiles {
                /// Four products in each of `turns` turns, of whatever is in the registers: what the unit can do at best.
                pub(crate) fn $busy(&self, turns: usize) {
                    assert!(turns > 0);
                    // Safety: the tiles are configured as long as `self` lives.
                    unsafe {
                        asm!(
                            "tilezero tmm0",
                            "tilezero tmm1",
                            "tilezero tmm2",
                            "tilezero tmm3",
                            "tilezero tmm4",
                            "tilezero tmm5",
                            "2:",
                            concat!($product, " tmm0, tmm4, tmm5"),
                            concat!($product, " tmm1, tmm4, tmm5"),
                            concat!($product, " tmm2, tmm4, tmm5"),
                            concat!($product, " tmm3, tmm4, tmm5"),
                            "dec {turns}",
                            "jnz 2b",
                            turns = inout(reg) turns => _,
                            out("tmm0") _,
                            out("tmm1") _,
                            out("tmm2") _,
                            out("tmm3") _,
                            out("tmm4") _,
                            out("tmm5") _,
                            options(nomem, nostack),
                        );
                    }
                }

                $(#[$doc])*
                ///
                /// `a` are 16 rows of 64 bytes, `a_stride` bytes apart, at each step `a_step` bytes further; `b` is
                /// packed: for each step two tiles of 1 KiB; `c` is 16 rows of 32 sums, taken as zero at the start with
                /// `first`.
                ///
                /// # Safety
                /// All of that must be valid to read, and `c` to write.
                #[inline(always)]
                pub(crate) unsafe fn $name(
                    &self,
                    a: *const $element,
                    a_stride: usize,
                    a_step: usize,
                    b: *const $element,
                    steps: usize,
                    c: *mut $sum,
                    first: bool,
                    ahead: Ahead,
                ) {
                    debug_assert!(steps > 0 && a.addr() % 64 == 0 && b.addr() % 64 == 0 && c.addr() % 64 == 0);
                    const { assert!(PANEL * 4 == 2 * 64) };
                    // Safety: the caller's promise; the tiles are configured as long as `self` lives.
                    unsafe {
                        asm!(
                            "test {first}, {first}",
                            "jnz 2f",
                            "tileloadd tmm0, [{c} + 2 * {row}]",
                            "tileloadd tmm1, [{c} + 2 * {row} + 64]",
                            "jmp 3f",
                            "2:",
                            "tilezero tmm0",
                            "tilezero tmm1",
                            "3:",
                            // Rows stream past, columns stay in the first cache.
                            "tileloaddt1 tmm2, [{a} + {a_stride}]",
                            "tileloadd tmm3, [{b} + {row}]",
                            concat!($product, " tmm0, tmm2, tmm3"),
                            "prefetchw [{write}]",
                            "prefetcht1 [{columns}]",
                            "prefetcht1 [{columns} + 64]",
                            "tileloadd tmm3, [{b} + {row} + 1024]",
                            concat!($product, " tmm1, tmm2, tmm3"),
                            "prefetcht1 [{rows}]",
                            "prefetcht1 [{rows} + 64]",
                            "add {write}, {write_step}",
                            "add {columns}, 128",
                            "add {rows}, 128",
                            "add {a}, {a_step}",
                            "add {b}, 2048",
                            "dec {steps}",
                            "jnz 3b",
                            "tilestored [{c} + 2 * {row}], tmm0",
                            "tilestored [{c} + 2 * {row} + 64], tmm1",
                            first = in(reg) first as u64,
                            a = inout(reg) a => _,
                            a_stride = in(reg) a_stride,
                            a_step = in(reg) a_step,
                            row = in(reg) 64usize,
                            write = inout(reg) ahead.write => _,
                            write_step = in(reg) ahead.write_step,
                            columns = inout(reg) ahead.columns => _,
                            rows = inout(reg) ahead.rows => _,
                            b = inout(reg) b => _,
                            steps = inout(reg) steps => _,
                            c = in(reg) c,
                            out("tmm0") _,
                            out("tmm1") _,
                            out("tmm2") _,
                            out("tmm3") _,
                            options(nostack),
                        );
                    }
                }
            }
        };
    }

    multiply!(
        /// Products of pairs of bf16 into sums of f32.
        multiply_bf16,
        busy_bf16,
        half::bf16,
        f32,
        "tdpbf16ps"
    );

    multiply!(
        /// Products of groups of four int8 into sums of int32.
        multiply_int8,
        busy_int8,
        i8,
        i32,
        "tdpbssd"
    );
}

/// A token that cannot exist, for other processors and systems.
#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
mod elsewhere {
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
        pub(crate) fn busy_bf16(&self, _turns: usize) {
            match *self {}
        }
        pub(crate) fn busy_int8(&self, _turns: usize) {
            match *self {}
        }
        pub(crate) fn fetch_to_write(&self, _first: *const u8, _stride: usize, _rows: usize, _bytes: usize) {
            match *self {}
        }
        pub(crate) unsafe fn multiply_bf16(
            &self,
            _a: *const half::bf16,
            _a_stride: usize,
            _a_step: usize,
            _b: *const half::bf16,
            _steps: usize,
            _c: *mut f32,
            _first: bool,
            _ahead: super::Ahead,
        ) {
            match *self {}
        }
        pub(crate) unsafe fn multiply_int8(
            &self,
            _a: *const i8,
            _a_stride: usize,
            _a_step: usize,
            _b: *const i8,
            _steps: usize,
            _c: *mut i32,
            _first: bool,
            _ahead: super::Ahead,
        ) {
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
