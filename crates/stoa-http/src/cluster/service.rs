//! Answers other daemons that ask for figures.

use std::sync::{Arc, Weak};

use bytes::Bytes;
use futures::future::BoxFuture;
use stoa_cluster::DaemonId;
use stoa_error::{Error, Result};
use stoa_member::{Service, ServiceKind};

use crate::app::App;
use crate::cluster::report::{Question, Report};

/// Tells other daemons what this one is asked for, as long as its HTTP server is there.
struct FiguresService(Weak<App>);

impl Service for FiguresService {
    fn answer(&self, _from: DaemonId, body: Bytes) -> BoxFuture<'static, Result<Bytes>> {
        let app = self.0.upgrade();
        Box::pin(async move {
            let ending = || Error::unavailable("the daemon ends").with_sqlstate("57P01");
            let app = app.ok_or_else(ending)?;
            Report::of(&app, &Question::decode(&body)?).encode()
        })
    }
}

/// From now on, if the server is a member of a cluster.
pub(crate) fn serve(app: &Arc<App>) {
    if let Some(member) = app.engine.member() {
        let service = FiguresService(Arc::downgrade(app));
        member.serve(ServiceKind::Figures, Arc::new(service));
    }
}
