// A session is not shared between threads.
// error: E0277
use warpwave::*;
pub fn share(session: &Session) {
    std::thread::scope(|scope| {
        scope.spawn(|| session.len());
    });
}
fn main() {}
