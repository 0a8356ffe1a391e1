//! The end of a session: what a fault left, and what goes on once it is over.

use blockyard::capacity::ExtentState;
use blockyard::env::Faults;

use super::*;

/// The time after a fault within which all names can be written again.
const RESUMED_WITHIN: Duration = Duration::from_secs(60);

/// A name next to one of a client. Such names lie in every partition.
fn probe(client: u64, name: u64, attempt: u64) -> String {
    format!("{client}/{name}-probe{attempt}")
}

impl Session<'_> {
    /// Checks the state after the fault is over, before a restart: everything that can continue
    /// does.
    pub(super) async fn aftermath(&self, stack: &Stack) -> Result<(), Violation> {
        let quarantined = self.check_service(stack)?;
        if quarantined > 0 {
            // They stay quarantined until the next start.
            self.counts.add("partitions quarantined", quarantined as u64);
            return Ok(());
        }
        if self.is_down() || self.plan.end == End::Kill {
            return Ok(());
        }
        let client = Client { number: 0, stack, session: self };
        let waiting = self.sims.iter().any(|sim| sim.faults_left() > 0);
        match self.plan.trouble {
            Trouble::Full => self.make_room(&client).await?,
            Trouble::SyncError | Trouble::WriteError | Trouble::OneDisk if waiting => {
                return Ok(());
            }
            Trouble::OneDisk => return self.goes_on_beside_it(&client).await,
            Trouble::SyncError | Trouble::WriteError => return self.is_poisoned(&client).await,
            Trouble::None
            | Trouble::PowerCut
            | Trouble::ReadErrors
            | Trouble::Stalls
            | Trouble::Coordinator
            | Trouble::Nodes => {
                if let Some(nodes) = stack.nodes() {
                    nodes.mend().await;
                }
                if let Some(lives) = stack.lives() {
                    lives.mend().await?;
                }
                self.sims.iter().for_each(|sim| sim.set_faults(Faults::default()));
                self.store.set_faults(coordinator::Faults::default());
            }
        }
        self.counts.add("troubles lifted", u64::from(self.plan.trouble != Trouble::None));
        self.writes_resume(&client).await?;
        // Audits of a cluster are not certain yet, and free nothing.
        if stack.nodes().is_none() && self.draw.percent(50) {
            self.garbage_is_gone(stack, |one| one.state == ExtentState::Sealed).await?;
            self.counts.add("garbage gone afterwards", 1);
        }
        Ok(())
    }

    /// Checks that a disk is poisoned only after an injected fault, and that a partition is
    /// quarantined only because of such a disk: no session damages files that it needs, not even by
    /// a power failure. Returns the number of quarantined partitions.
    fn check_service(&self, stack: &Stack) -> Result<usize, Violation> {
        let trouble = self.plan.trouble;
        let poisoned = stack.is_poisoned();
        if poisoned && trouble != Trouble::OneDisk && !trouble.has_struck(&self.sims) {
            return Err(format!("a disk takes no writes with {:?}", self.plan));
        }
        let lacks_a_disk = poisoned || !stack.is_whole();
        let mut quarantined = 0;
        let all = stack.hosts().into_iter().flat_map(|host| host.status());
        for one in all.filter(|one| one.quarantined) {
            let why = one.stopped.unwrap_or_default();
            if !(lacks_a_disk && why.contains("disk that is out of service")) {
                return Err(format!("{} is {why}, with {:?}", one.id, self.plan));
            }
            quarantined += 1;
        }
        Ok(quarantined)
    }

    /// Checks that a disk takes no writes after a failed write or sync, and that its bytes can be
    /// read.
    async fn is_poisoned(&self, client: &Client<'_>) -> Result<(), Violation> {
        if self.plan.trouble == Trouble::SyncError && self.sims.len() == 1 {
            self.counts.add("failed syncs", 1);
            if client.can_write(&probe(0, 0, 0)).await? {
                return Err("a write was acknowledged after a failed sync".to_owned());
            }
        }
        for number in 0..CLIENTS {
            Client { number, ..*client }.check_all().await?;
        }
        client.check_shared().await
    }

    /// Checks that bytes on a poisoned disk can be read, that the other disk takes all writes, and
    /// that garbage on it is freed.
    async fn goes_on_beside_it(&self, client: &Client<'_>) -> Result<(), Violation> {
        self.is_poisoned(client).await?;
        self.writes_resume(client).await?;
        let first = client.stack.first_disk;
        let sound = |one: &ExtentInfo| one.disk != first && one.state == ExtentState::Sealed;
        self.garbage_is_gone(client.stack, sound).await?;
        self.counts.add("sound disks beside a poisoned one", 1);
        Ok(())
    }

    /// Makes room on a full disk, with a larger disk or by deletes.
    async fn make_room(&self, client: &Client<'_>) -> Result<(), Violation> {
        if self.draw.percent(50) {
            Rig::heal(&self.sims, DISK_BYTES);
            self.counts.add("disks grown", 1);
            return Ok(());
        }
        for sim in &self.sims {
            sim.set_faults(Faults::default());
        }
        self.counts.add("disks emptied", 1);
        client.delete_all().await
    }

    /// Checks that every partition takes writes again within a limit of time.
    pub(super) async fn writes_resume(&self, client: &Client<'_>) -> Result<(), Violation> {
        let clock = &client.stack.env.clock;
        let end = clock.monotonic() + RESUMED_WITHIN;
        for (number, name) in (0..CLIENTS).flat_map(|n| (0..NAMES).map(move |name| (n, name))) {
            for attempt in 0.. {
                // Another name for each try: a change with an unknown outcome adds possible states
                // to its name.
                let name = probe(number, name, attempt);
                if client.can_write(&name).await? || self.is_down() {
                    break;
                }
                if clock.monotonic() > end {
                    let map = client.stack.router.map();
                    let at = map.at(RoutingKey::blob(&key(&name)).as_bytes());
                    return Err(format!("the trouble is over, {name} cannot be written: {at:?}"));
                }
                clock.sleep(Duration::from_millis(500)).await;
            }
        }
        self.counts.add("partitions written to afterwards", client.stack.partitions() as u64);
        Ok(())
    }
}
