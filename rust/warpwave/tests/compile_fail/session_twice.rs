// A session is fed once in one pass.
// error: E0499
use warpwave::*;
pub fn twice(session: &mut Session) -> Result<()> {
    Session::feed_many(&mut [(session, &[1]), (session, &[2])])
}
fn main() {}
