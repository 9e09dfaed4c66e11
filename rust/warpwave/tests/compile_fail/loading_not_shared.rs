// The callback of a store is called by many threads.
// error: E0277
use warpwave::*;
use std::cell::Cell;
pub fn config() -> StoreConfig {
    let count = Cell::new(0);
    StoreConfig::new().loading(move |_, _| {
        count.set(count.get() + 1);
        std::ops::ControlFlow::Continue(())
    })
}
fn main() {}
