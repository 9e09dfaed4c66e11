// A tensor cannot be written while a view of it is there.
// error: E0502
use warpwave::*;
pub fn write(mut x: Tensor) -> Result<Vec<f32>> {
    let view = x.transpose(0, 1)?;
    x.view_mut().fill(1.0f32)?;
    view.to_vec()
}
fn main() {}
