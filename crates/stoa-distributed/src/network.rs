//! Connections between daemons.

use futures::FutureExt;
use futures::future::BoxFuture;
use stoa_cluster::DaemonId;
use stoa_error::Result;
use stoa_member::Member;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

/// A connection, whatever protects it.
pub trait Socket: AsyncRead + AsyncWrite + Send + Unpin + 'static {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin + 'static> Socket for T {}

/// How daemons reach each other.
pub trait Network: Send + Sync + 'static {
    /// Connects to a port of a daemon.
    ///
    /// # Errors
    /// Unavailable: it cannot be reached, or is not who it should be.
    fn connect(&self, to: DaemonId, port: u16) -> BoxFuture<'static, Result<Box<dyn Socket>>>;

    /// The connection of a daemon that has connected here.
    ///
    /// # Errors
    /// Whoever has connected is no daemon of the cluster.
    fn admit(&self, socket: TcpStream) -> BoxFuture<'static, Result<Box<dyn Socket>>>;
}

/// The daemons of a cluster, by the certificates that the membership has of them.
#[derive(Clone, Debug)]
pub struct Members(pub Member);

impl Network for Members {
    fn connect(&self, to: DaemonId, port: u16) -> BoxFuture<'static, Result<Box<dyn Socket>>> {
        let member = self.0.clone();
        async move {
            let stream = member.peers().connect(to, port).await?;
            Ok(Box::new(stream) as Box<dyn Socket>)
        }
        .boxed()
    }

    fn admit(&self, socket: TcpStream) -> BoxFuture<'static, Result<Box<dyn Socket>>> {
        let member = self.0.clone();
        async move {
            let (_, stream) = member.peers().admit(socket).await?;
            Ok(Box::new(stream) as Box<dyn Socket>)
        }
        .boxed()
    }
}
