//! Who uses a tensor besides the lane that writes it.

/// Uses of a tensor on an application's streams. `E` marks the end of one.
#[derive(Debug)]
pub(super) struct Uses<E> {
    open: usize,
    /// What the next write waits for.
    ended: Vec<E>,
    spare: Vec<E>,
}

impl<E> Default for Uses<E> {
    fn default() -> Self {
        Self { open: 0, ended: Vec::new(), spare: Vec::new() }
    }
}

impl<E> Uses<E> {
    pub(super) fn begin(&mut self) {
        self.open += 1;
    }

    /// Ends one. `mark` is reached when the work of that use has ended; `None` if it has ended already.
    pub(super) fn end(&mut self, mark: Option<E>) {
        self.open -= 1;
        self.ended.extend(mark);
    }

    /// Whether somebody has begun a use and not ended it. One who forgets to keeps the tensor for ever: no mark says when the use
    /// ends, so there is none to wait for.
    pub(super) fn is_open(&self) -> bool {
        self.open > 0
    }

    /// A mark to use again.
    pub(super) fn spare(&mut self) -> Option<E> {
        self.spare.pop()
    }

    /// Whether every use has ended, the work included. Looks at no mark twice that was reached.
    pub(super) fn have_ended<F>(&mut self, is_reached: impl Fn(&E) -> Result<bool, F>) -> Result<bool, F> {
        while let Some(mark) = self.ended.last() {
            if !is_reached(mark)? {
                return Ok(false);
            }
            self.spare.extend(self.ended.pop());
        }
        Ok(!self.is_open())
    }

    /// Orders a write behind every use that was ended, by `wait` on its mark.
    pub(super) fn order<F>(&mut self, wait: impl Fn(&E) -> Result<(), F>) -> Result<(), F> {
        while let Some(mark) = self.ended.last() {
            // Kept where that fails: the next write must still wait for it.
            wait(mark)?;
            self.spare.extend(self.ended.pop());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::convert::Infallible;

    use super::*;

    fn reached(until: u32) -> impl Fn(&u32) -> Result<bool, Infallible> {
        move |&mark| Ok(mark <= until)
    }

    #[test]
    fn a_tensor_is_idle_when_every_use_and_its_work_have_ended() {
        let mut uses = Uses::default();
        assert_eq!(uses.have_ended(reached(0)), Ok(true), "nobody has used it");
        uses.begin();
        uses.begin();
        uses.end(Some(1));
        assert_eq!(uses.have_ended(reached(1)), Ok(false), "one is still open");
        uses.end(Some(2));
        assert_eq!(uses.have_ended(reached(1)), Ok(false), "its work has not ended");
        assert_eq!(uses.have_ended(reached(2)), Ok(true));
        assert_eq!(uses.have_ended(|_| Err(())), Ok(true), "what was reached is not looked at again");
        assert!(uses.spare().is_some() && uses.spare().is_some() && uses.spare().is_none());
    }

    #[test]
    fn a_forgotten_use_is_open_for_ever_and_nothing_waits_for_it() {
        let mut uses = Uses::<u32>::default();
        uses.begin();
        assert_eq!((uses.is_open(), uses.have_ended(reached(9))), (true, Ok(false)));
        assert_eq!(uses.order(|_| Err("it waits")), Ok(()));
    }

    #[test]
    fn a_write_waits_for_each_ended_use_once_and_again_where_that_failed() {
        let mut uses = Uses::default();
        let waited = RefCell::new(Vec::new());
        uses.begin();
        uses.end(Some(1));
        uses.begin();
        uses.end(None);
        assert_eq!(uses.order(|_| Err("not now")), Err("not now"));
        for _ in 0..2 {
            assert_eq!(
                uses.order(|&mark| {
                    waited.borrow_mut().push(mark);
                    Ok::<_, Infallible>(())
                }),
                Ok(())
            );
        }
        assert_eq!(*waited.borrow(), [1]);
    }
}
