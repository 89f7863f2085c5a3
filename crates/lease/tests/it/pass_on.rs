//! A backend of a test changes a call or two; the others go to the one beneath it, its `right`.

/// Calls of `Backend` that are passed on as they are, by name, inside its `impl`.
macro_rules! pass_on {
    (facts) => {
        fn facts(&self) -> Facts {
            self.right.facts()
        }
    };
    (renew) => {
        fn renew<'a>(&'a self, batch: &'a [Renew]) -> Fut<'a, Vec<RenewReply>> {
            self.right.renew(batch)
        }
    };
    (release) => {
        fn release<'a>(&'a self, batch: &'a [Release]) -> Fut<'a, Vec<ReleaseReply>> {
            self.right.release(batch)
        }
    };
    (inspect) => {
        fn inspect<'a>(
            &'a self,
            group: Option<&'a Name>,
            name: &'a Name,
        ) -> Fut<'a, Result<Option<Holder>, BackendError>> {
            self.right.inspect(group, name)
        }
    };
    (wake) => {
        fn wake<'a>(&'a self, names: &'a Names) -> Fut<'a, WakeStream> {
            self.right.wake(names)
        }
    };
    (doctor) => {
        fn doctor(&self) -> Fut<'_, Vec<Finding>> {
            self.right.doctor()
        }
    };
    ($($call:ident)+) => {
        $(pass_on!($call);)+
    };
}
