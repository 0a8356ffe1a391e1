//! The end of a history: all blobs are right, no garbage is left, and damage is never served.

use blockyard::capacity::ExtentKind;

use super::*;

/// Reads may fail, as with any failing disk; nothing else may.
const FLIPPED: Plan = Plan { trouble: Trouble::ReadErrors, end: End::PowerCut };

impl Session<'_> {
    /// Checks at the end that all blobs are right and can be changed.
    pub(super) async fn last_look(self, machine: Machine) -> Result<(), Violation> {
        if !machine.is_cluster() {
            disks::are_missed(&machine, self.store).await?;
        }
        let stack = Stack::open(&machine, self.store, self.borders).await?;
        if !machine.is_cluster() {
            disks::are_remembered(&machine, stack.coordinator.as_ref()).await?;
        }
        let clients: Vec<Client<'_>> =
            (0..CLIENTS).map(|number| Client { number, stack: &stack, session: &self }).collect();
        for client in &clients {
            client.check_all().await?;
        }
        clients[0].check_shared().await?;
        clients[0].check_contests().await?;
        clients[0].check_search().await?;
        if !machine.is_cluster() {
            self.garbage_is_gone(&stack, |_| true).await?;
        }
        extents::are_all_used(&stack, self.store).await?;
        self.writes_resume(&clients[0]).await?;
        join_all(clients.into_iter().map(|client| client.run(5)))
            .await
            .into_iter()
            .collect::<Result<Vec<()>, Violation>>()?;
        if self.draw.percent(40) {
            return self.flips_are_never_served(&stack).await;
        }
        stack.shutdown().await;
        Ok(())
    }

    /// Checks that after a pass and an audit no more bytes are stored than blobs may refer to
    /// (I11). An open extent may have bytes of a write with an unknown outcome, so `what` is
    /// checked only after it is sealed.
    pub(super) async fn garbage_is_gone(
        &self,
        stack: &Stack,
        what: impl Fn(&ExtentInfo) -> bool,
    ) -> Result<(), Violation> {
        let live = self.model.borrow().stored_max();
        let mut left = Vec::new();
        // Layers of deleted page blobs are removed one per pass.
        for wait in (0..40).map(|wait| 100 + 50 * wait) {
            stack.env.clock.sleep(Duration::from_millis(wait)).await;
            left = stack.capacity.extents().await;
            left.retain(|one| one.kind == ExtentKind::Data && one.len > one.freed && what(one));
            let stored: u64 = left.iter().map(|info| info.len - info.freed).sum();
            if stored <= live || self.is_down() {
                return Ok(());
            }
        }
        Err(format!("at most {live} bytes are referred to, but there are {left:?}"))
    }

    /// Flips bits everywhere and checks that only right bytes are served (I13).
    async fn flips_are_never_served(&self, stack: &Stack) -> Result<(), Violation> {
        let flips = self.draw.between(1, 60);
        if stack.nodes().is_some() {
            self.counts.add("flips", nodes::flip(&self.sims, flips));
            for number in 0..CLIENTS {
                Client { number, stack, session: self }.check_all().await?;
            }
            return Ok(());
        }
        let flipped =
            (0..flips).filter_map(|_| self.draw.one(&self.sims)?.flip_random("extents/")).count();
        self.counts.add("flips", flipped as u64);
        for number in 0..CLIENTS {
            let reader =
                Client { number, stack, session: &Session { plan: FLIPPED, ..self.again() } };
            reader.check_all().await?;
        }
        Ok(())
    }

    fn again(&self) -> Self {
        Self {
            plan: self.plan,
            draw: self.draw,
            stumbles: self.stumbles,
            streams: self.streams,
            releases: self.releases,
            store: self.store,
            model: self.model,
            sims: self.sims.clone(),
            borders: self.borders,
            counts: self.counts,
        }
    }
}
