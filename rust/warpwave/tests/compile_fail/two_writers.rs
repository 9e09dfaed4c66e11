// Two views cannot write to one tensor.
// error: E0499
use warpwave::*;
pub fn write(x: &mut Tensor) -> Result<()> {
    let mut a = x.view_mut();
    let mut b = x.view_mut();
    a.fill(1.0f32)?;
    b.fill(2.0f32)
}
fn main() {}
