// A writer of GGUF files is not shared between threads.
// error: E0277
use warpwave::*;
pub fn share(writer: &GgufWriter) {
    std::thread::scope(|scope| {
        scope.spawn(|| format!("{writer:?}"));
    });
}
fn main() {}
