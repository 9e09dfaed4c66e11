// A view cannot outlive its tensor.
// error: E0505
use warpwave::*;
pub fn read(x: Tensor) -> Result<Vec<f32>> {
    let view = x.transpose(0, 1)?;
    drop(x);
    view.to_vec()
}
fn main() {}
