//! The way to the workers of other daemons.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use datafusion::error::{DataFusionError, Result as EngineResult};
use datafusion_distributed::grpc::{BoxCloneSyncChannel, create_worker_client};
use datafusion_distributed::{ChannelResolver, WorkerChannel};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use stoa_cluster::DaemonId;
use stoa_error::{Error, Result};
use stoa_semantics::errors::to_datafusion;
use tonic::transport::{Channel, Endpoint};
use url::Url;

use crate::network::Network;

/// The longest time in which connecting comes to an end; the network's own limit is shorter.
const CONNECT_LIMIT: Duration = Duration::from_secs(2);
/// After so long without a byte, the other side is asked for a sign of life.
const PING_AFTER: Duration = Duration::from_secs(2);
/// How long it is waited for.
const PING_LIMIT: Duration = Duration::from_secs(3);

/// Connections to workers, one for each, made when they are first needed.
#[derive(Clone)]
pub struct Channels {
    network: Arc<dyn Network>,
    open: Arc<Mutex<HashMap<Url, Channel>>>,
}

impl Channels {
    /// Channels over connections of `network`.
    pub fn new(network: Arc<dyn Network>) -> Self {
        Self { network, open: Arc::default() }
    }

    /// Forgets the connection to a worker: what is under way goes on, what comes next connects anew.
    pub fn forget(&self, worker: &Url) {
        self.open.lock().remove(worker);
    }

    async fn channel(&self, worker: &Url) -> Result<Channel> {
        if let Some(channel) = self.open.lock().get(worker) {
            return Ok(channel.clone());
        }
        let (daemon, port) = daemon_of(worker)
            .ok_or_else(|| Error::internal(format!("{worker} is no daemon's worker")))?;
        let network = Arc::clone(&self.network);
        let connect = tower::service_fn(move |_| {
            let connecting = network.connect(daemon, port);
            async move { connecting.await.map(TokioIo::new).map_err(io::Error::other) }
        });
        let endpoint = Endpoint::from_shared(worker.to_string())
            .map_err(|e| Error::internal("the address of a worker is wrong").with_source(e))?
            .connect_timeout(CONNECT_LIMIT)
            .http2_keep_alive_interval(PING_AFTER)
            .keep_alive_timeout(PING_LIMIT)
            .keep_alive_while_idle(true);
        let connected = endpoint.connect_with_connector(connect).await;
        let channel = connected.map_err(|e| {
            Error::unavailable(format!("daemon {daemon} cannot be reached for its part of a plan"))
                .with_source(e)
        })?;
        self.open.lock().insert(worker.clone(), channel.clone());
        Ok(channel)
    }
}

#[async_trait]
impl ChannelResolver for Channels {
    async fn get_worker_client_for_url(
        &self,
        url: &Url,
    ) -> EngineResult<Box<dyn WorkerChannel>, DataFusionError> {
        let channel = self.channel(url).await.map_err(to_datafusion)?;
        Ok(create_worker_client(BoxCloneSyncChannel::new(channel)))
    }
}

/// The name of a worker: its daemon, and the port on which it is.
///
/// # Errors
/// None that a caller could do something about.
pub fn url_of(daemon: DaemonId, port: u16) -> Result<Url> {
    let text = format!("http://d{:016x}.stoa:{port}/", daemon.bits());
    Url::parse(&text).map_err(|e| Error::internal("a worker has no address").with_source(e))
}

/// Whose worker it is, and its port.
pub fn daemon_of(worker: &Url) -> Option<(DaemonId, u16)> {
    let bits = worker.host_str()?.strip_prefix('d')?.strip_suffix(".stoa")?;
    let bits = u64::from_str_radix(bits, 16).ok()?;
    Some((DaemonId::from_bits(bits), worker.port_or_known_default()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_names_a_daemon_and_a_port() {
        for (bits, port) in [(0, 80), (u64::MAX, 65535), (0x0123_4567_89ab_cdef, 1)] {
            let daemon = DaemonId::from_bits(bits);
            assert_eq!(daemon_of(&url_of(daemon, port).unwrap()), Some((daemon, port)));
        }
        assert_eq!(daemon_of(&Url::parse("http://localhost:1/").unwrap()), None);
    }
}
