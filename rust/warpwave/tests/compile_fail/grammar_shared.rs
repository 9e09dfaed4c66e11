// A grammar is not shared between threads.
// error: E0277
use warpwave::*;
pub fn share(grammar: &Grammar) {
    std::thread::scope(|scope| {
        scope.spawn(|| format!("{grammar:?}"));
    });
}
fn main() {}
