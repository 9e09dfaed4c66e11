// A text of a GGUF file cannot outlive it.
// error: E0515
use warpwave::*;
pub fn name() -> Result<&'static str> {
    let file = Gguf::open("a.gguf")?;
    file.text("general.name")
}
fn main() {}
