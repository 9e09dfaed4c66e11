// The bytes of a tensor cannot outlive their file.
// error: E0515
use warpwave::*;
pub fn bytes() -> Result<&'static [u8]> {
    let file = Gguf::open("a.gguf")?;
    file.tensor(0)?.data()
}
fn main() {}
