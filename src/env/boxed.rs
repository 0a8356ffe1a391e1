//! Futures that are made in their box.

use std::pin::Pin;

/// A future in a box, as `async_trait` returns it. A method of such a trait that most requests call
/// is written out with this type, because `async_trait` uses `Box::pin`.
pub type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Boxes the future that `make` returns. `Box::pin` first makes the future on the stack and then
/// copies it to the box; the future of a request has 10 KiB. Here the box is allocated first.
pub fn boxed<F: Future>(make: impl FnOnce() -> F) -> Pin<Box<F>> {
    Box::into_pin(Box::write(Box::new_uninit(), make()))
}

#[cfg(test)]
mod tests {
    use std::panic::AssertUnwindSafe;
    use std::panic::catch_unwind;
    use std::sync::Arc;

    use super::*;

    #[tokio::test]
    async fn future_in_its_box_is_the_one_that_was_made() {
        let held = Arc::new(7);
        let of = Arc::clone(&held);
        let future = boxed(|| async move {
            tokio::task::yield_now().await;
            *of
        });
        assert_eq!((Arc::strong_count(&held), future.await), (2, 7));
        assert_eq!(Arc::strong_count(&held), 1, "dropped once");
    }

    #[test]
    fn nothing_is_dropped_that_was_not_made() {
        let made = catch_unwind(AssertUnwindSafe(|| {
            drop(boxed(|| -> std::future::Ready<Box<u32>> { panic!("planned") }));
        }));
        assert!(made.is_err());
    }
}
