//! All that daemons have agreed on, as of one moment.

use std::collections::BTreeMap;
use std::time::Duration;

use stoa_cluster::lease::{Holder, LeaseRow};
use stoa_cluster::membership::{Member, MemberTable};
use stoa_cluster::{DaemonId, DatabaseTime};
use stoa_error::Result;

use super::sql::CLOCK;
use super::{Cluster, DaemonInfo, DaemonLife, FORMAT, sql};
use crate::database::{Lane, Row};
use crate::error;

/// All that daemons have agreed on, as of one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterState {
    /// When it was read, on the database's clock.
    pub read_at: DatabaseTime,
    /// The members.
    pub members: MemberTable,
    /// What the newest life of each daemon has said of itself.
    pub daemons: BTreeMap<DaemonId, DaemonInfo>,
    /// The newest life of each daemon.
    pub lives: BTreeMap<DaemonId, DaemonLife>,
    /// The leases, by name.
    pub leases: BTreeMap<String, Lease>,
    /// The format of what daemons share; a daemon that does not know it must not be a member.
    pub format: i64,
}

/// A lease and what it is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// Who has it, and until when.
    pub row: LeaseRow,
    /// What it is for, for people.
    pub about: String,
}

type Suspicions = BTreeMap<DaemonId, Vec<(DaemonId, DatabaseTime)>>;

impl Cluster {
    /// Reads everything, in one round trip.
    ///
    /// # Errors
    /// `Unavailable` where the database does not answer within a few seconds.
    pub async fn state(&self) -> Result<ClusterState> {
        let mine = format!("WHERE catalog_name = {}", self.catalog);
        let statements = vec![
            format!("SELECT {CLOCK}"),
            format!("SELECT epoch, removed, format FROM stoa_cluster {mine}"),
            format!(
                "SELECT daemon, suspected_by, noted_at FROM stoa_suspicions {mine} ORDER BY noted_at"
            ),
            format!(
                "SELECT daemon, incarnation, state, until, joined_at, state_since, host_name,
                        peer_address, pg_address, http_address, flight_address, zone, build,
                        protocol_min, protocol_max, cores, cache_bytes, certificate, number
                 FROM stoa_daemons {mine}"
            ),
            format!(
                "SELECT name, daemon, incarnation, epoch, until, about FROM stoa_leases {mine}"
            ),
        ];
        let rows = self.database.transact(Lane::Reads, statements).await?;
        let [clock, cluster, suspicions, daemons, leases] = &rows[..] else {
            return Err(error::damaged(self.database.place(), "the state of the cluster"));
        };
        let read_at = match clock.first() {
            Some(row) => self.time(row, 0)?,
            None => DatabaseTime::default(),
        };
        // Before the first daemon has joined there is no row.
        let (epoch, removed, format) = match cluster.first() {
            Some(row) => (self.count(row, 0)?, self.count(row, 1)?, self.value(row, 2)?),
            None => (0, 0, FORMAT),
        };
        let mut noted = Suspicions::new();
        for row in suspicions {
            let suspicion = (self.daemon(row, 1)?, self.time(row, 2)?);
            noted.entry(self.daemon(row, 0)?).or_default().push(suspicion);
        }
        let members = daemons.iter().map(|row| self.member(row, &mut noted));
        let members = members.collect::<Result<Vec<_>>>()?;
        let infos = daemons.iter().map(|row| self.info(row)).collect::<Result<Vec<_>>>()?;
        Ok(ClusterState {
            read_at,
            members: MemberTable::from_rows(epoch, removed, members),
            daemons: infos.into_iter().map(|info| (info.id, info)).collect(),
            lives: daemons.iter().map(|row| self.life(row)).collect::<Result<_>>()?,
            leases: leases.iter().map(|row| self.lease(row)).collect::<Result<_>>()?,
            format,
        })
    }

    fn member(&self, row: &Row, noted: &mut Suspicions) -> Result<(DaemonId, Member)> {
        let (daemon, state) = (self.daemon(row, 0)?, self.value(row, 2)?);
        let unknown =
            || error::damaged(self.database.place(), format!("a daemon's state is {state}"));
        let member = Member {
            incarnation: self.count(row, 1)?,
            state: sql::state(state).ok_or_else(unknown)?,
            until: self.time(row, 3)?,
            suspicions: noted.remove(&daemon).unwrap_or_default(),
        };
        Ok((daemon, member))
    }

    fn life(&self, row: &Row) -> Result<(DaemonId, DaemonLife)> {
        let life = DaemonLife {
            number: self.number(row, 18)?,
            joined_at_ms: self.value::<i64>(row, 4)? / 1000,
            state_since_ms: self.value::<i64>(row, 5)? / 1000,
        };
        Ok((self.daemon(row, 0)?, life))
    }

    fn info(&self, row: &Row) -> Result<DaemonInfo> {
        Ok(DaemonInfo {
            id: self.daemon(row, 0)?,
            name: self.value(row, 6)?,
            peer_address: self.value(row, 7)?,
            pg_address: self.value(row, 8)?,
            http_address: self.value(row, 9)?,
            flight_address: self.value(row, 10)?,
            zone: self.value(row, 11)?,
            build: self.value(row, 12)?,
            protocol_min: self.number(row, 13)?,
            protocol_max: self.number(row, 14)?,
            cores: self.number(row, 15)?,
            cache_bytes: self.count(row, 16)?,
            certificate: self.certificate(row, 17)?,
        })
    }

    fn lease(&self, row: &Row) -> Result<(String, Lease)> {
        let holder = Holder { daemon: self.daemon(row, 1)?, incarnation: self.count(row, 2)? };
        let held = LeaseRow { holder, epoch: self.count(row, 3)?, until: self.time(row, 4)? };
        Ok((self.value(row, 0)?, Lease { row: held, about: self.value(row, 5)? }))
    }

    fn daemon(&self, row: &Row, index: usize) -> Result<DaemonId> {
        Ok(DaemonId::from_bits(self.value::<i64>(row, index)?.cast_unsigned()))
    }

    fn time(&self, row: &Row, index: usize) -> Result<DatabaseTime> {
        Ok(DatabaseTime(Duration::from_micros(self.count(row, index)?)))
    }

    fn count(&self, row: &Row, index: usize) -> Result<u64> {
        self.number(row, index)
    }

    /// A number that fits into a `T`.
    fn number<T: TryFrom<i64>>(&self, row: &Row, index: usize) -> Result<T> {
        let number = self.value::<i64>(row, index)?;
        T::try_from(number).map_err(|_| {
            error::damaged(self.database.place(), format!("column {index} of {row:?} is {number}"))
        })
    }

    fn certificate(&self, row: &Row, index: usize) -> Result<[u8; 32]> {
        let bytes: Vec<u8> = self.value(row, index)?;
        let length = bytes.len();
        bytes.try_into().map_err(|_| {
            let what = format!("the hash of a daemon's certificate has {length} bytes");
            error::damaged(self.database.place(), what)
        })
    }
}
