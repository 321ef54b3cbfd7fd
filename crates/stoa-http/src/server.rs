//! Serving: routes, the rules every request passes, and an ordered end.
//!
//! At shutdown `/ready` turns 503 and new SQL is refused at once; requests under way run to their
//! end (the engine cancels them when its own time is up); then connections are closed.

use std::future::Future;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{ConnectInfo, DefaultBodyLimit, Request, State};
use axum::http::{HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, post};
use stoa_error::{Error, Result};
use stoa_listen::Door;
use stoa_query::Engine;
use tokio::net::TcpListener;

use crate::app::App;
use crate::arrivals::{Arrivals, Attended, Visitor};
use crate::asker::{self, Asker};
use crate::guard::Guard;
use crate::options::HttpOptions;
use crate::problem::Problem;
use crate::{
    assets, cluster, compress, description, file_columns, files, history, hive_ui, hql, live, me,
    probes, prometheus, queries, results, rows, sessions, shapes, sql, status, tables,
};

/// Answers requests on `listener` until `shutdown` completes, with default options.
///
/// # Errors
/// Unavailable: the listener is not usable.
pub async fn serve(
    listener: TcpListener,
    engine: Arc<Engine>,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> Result<()> {
    serve_with(listener, engine, HttpOptions::default(), shutdown).await
}

/// Answers requests on `listener` until `shutdown` completes; then waits for what is under way, at
/// most [`HttpOptions::drain_ms_max`].
///
/// # Errors
/// Unavailable: the listener is not usable.
pub async fn serve_with(
    listener: TcpListener,
    engine: Arc<Engine>,
    options: HttpOptions,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> Result<()> {
    let unusable = |error| Error::unavailable("cannot serve HTTP").with_source(error);
    let address = listener.local_addr().map_err(unusable)?;
    let guard = Guard::new(address.ip(), &options.allowed_hosts);
    let app = Arc::new(App::new(engine, guard, &options));
    let sampling = stoa_env::task::spawn(Arc::clone(&app.engine).keep_history());
    let watching = stoa_env::task::spawn(Arc::clone(&app.alerts).run());
    let logging = stoa_env::task::spawn(Arc::clone(&app.query_log).run());
    let tidying = stoa_env::task::spawn(Arc::clone(&app).tidy());
    cluster::serve(&app);
    let door = Door::new("HTTP", options.max_connections, options.limits.clone());
    let listener = Arrivals::new(listener, door, options.tls.clone());
    let (closing, mut closed) = tokio::sync::watch::channel(false);
    let drain = {
        let app = Arc::clone(&app);
        async move {
            shutdown.await;
            app.flights.close().await;
        }
    };
    let drain_ms_max = Duration::from_millis(options.drain_ms_max);
    let service = router(Arc::clone(&app), options.body_bytes_max);
    let service = service.into_make_service_with_connect_info::<Visitor>();
    let server = axum::serve(listener, service).with_graceful_shutdown(async move {
        drain.await;
        closing.send_replace(true);
    });
    let result = tokio::select! {
        result = server.into_future() => result.map_err(unusable),
        () = overdue(&app, &mut closed, drain_ms_max) => Ok(()),
    };
    sampling.abort();
    watching.abort();
    tidying.abort();
    logging.abort();
    result
}

/// Completes when connections should have ended by themselves but did not.
async fn overdue(app: &App, closed: &mut tokio::sync::watch::Receiver<bool>, limit: Duration) {
    app.flights.closed().await;
    // Requests under way may take `limit`; what is left after them has a second to say goodbye.
    let _ = stoa_env::timer::timeout(limit, closed.wait_for(|closed| *closed)).await;
    stoa_env::timer::sleep(Duration::from_secs(1)).await;
    tracing::warn!("connections closed that did not end by themselves");
}

fn router(app: Arc<App>, body_bytes_max: usize) -> Router {
    Router::new()
        .route("/v1/sql", post(sql::run))
        .route("/v1/sessions", post(sessions::open))
        .route("/v1/sessions/{id}", delete(sessions::end))
        .route("/v1/results/{id}", get(results::describe).delete(results::remove))
        .route("/v1/results/{id}/rows", get(results::rows))
        .route("/v1/hql", post(hql::run))
        .route("/v1/tables", get(tables::list))
        .route("/v1/tables/{namespace}/{table}", get(tables::describe))
        .route("/v1/tables/{namespace}/{table}/files", get(files::list))
        .route("/v1/tables/{namespace}/{table}/rows", post(rows::add))
        .route("/v1/file-columns", post(file_columns::infer))
        .route("/v1/queries", get(queries::list))
        .route("/v1/queries/{id}", delete(queries::cancel))
        .route("/v1/queries/{id}/plan", get(queries::plan))
        .route("/v1/query-log", get(queries::log))
        .route("/api/v1/sessions", get(hive_ui::sessions))
        .route("/api/v1/queries/active", get(hive_ui::active))
        .route("/api/v1/queries/historical", get(hive_ui::historical))
        .route("/v1/me", get(me::me))
        .route("/v1/sign-out", get(me::sign_out))
        .route("/v1/shapes", get(shapes::list))
        .route("/v1/status", get(status::status))
        .route("/v1/history", get(history::read))
        .route("/v1/live", get(live::live))
        .route("/v1/cluster", get(cluster::overview))
        .route("/v1/cluster/{daemon}", get(cluster::daemon))
        .route("/openapi.yaml", get(description::openapi))
        .route("/health", get(probes::health))
        .route("/ready", get(probes::ready))
        .route("/metrics", get(prometheus::metrics))
        .fallback(assets::file)
        .method_not_allowed_fallback(method_not_allowed)
        .layer(DefaultBodyLimit::max(body_bytes_max))
        .layer(from_fn(compress::compressed))
        .layer(from_fn_with_state(Arc::clone(&app), rules))
        .with_state(app)
}

/// What holds for every request: who may ask, which headers protect the answer, and counting.
async fn rules(State(app): State<Arc<App>>, mut request: Request, next: Next) -> Response {
    let route = route_name(request.uri().path());
    let counted = Counted::new(Arc::clone(&app), route);
    let allowed = app.guard.check(request.method(), request.uri(), request.headers());
    let peer = peer_of(&request);
    let mut response = match allowed {
        Ok(()) => match Asker::of(&app.engine, request.uri().path(), request.headers(), peer).await
        {
            Ok(asker) => {
                asker.join(&mut request);
                let visitor = request.extensions().get::<ConnectInfo<Visitor>>();
                let busy = visitor.and_then(|ConnectInfo(visitor)| visitor.begin());
                let response = next.run(request).await;
                response.map(|body| Body::new(Attended::new(body, busy)))
            }
            Err(error) => asker::refused(error),
        },
        Err(error) => Problem::from(error).into_response(),
    };
    for (name, value) in PROTECTION {
        response.headers_mut().entry(name).or_insert(HeaderValue::from_static(value));
    }
    counted.end(response.status());
    response
}

/// Where a request comes from.
fn peer_of(request: &Request) -> Option<IpAddr> {
    request.extensions().get::<ConnectInfo<Visitor>>()?.0.address()
}

const PROTECTION: [(HeaderName, &str); 4] = [
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::CACHE_CONTROL, "no-store"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

/// Counts a request, also if its client goes away before the answer.
struct Counted {
    app: Arc<App>,
    route: &'static str,
    status: u16,
}

impl Counted {
    fn new(app: Arc<App>, route: &'static str) -> Self {
        app.requests.begin();
        Self { app, route, status: 499 }
    }

    fn end(mut self, status: StatusCode) {
        self.status = status.as_u16();
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.app.requests.end(self.route, self.status);
    }
}

fn route_name(path: &str) -> &'static str {
    const ROUTES: [&str; 19] = [
        "/v1/file-columns",
        "/v1/history",
        "/v1/live",
        "/v1/me",
        "/v1/sign-out",
        "/v1/query-log",
        "/v1/sql",
        "/v1/sessions",
        "/v1/results",
        "/v1/hql",
        "/v1/tables",
        "/v1/queries",
        "/v1/shapes",
        "/v1/status",
        "/v1/cluster",
        "/openapi.yaml",
        "/health",
        "/ready",
        "/metrics",
    ];
    ROUTES.into_iter().find(|route| path.starts_with(route)).unwrap_or("/")
}

async fn method_not_allowed(method: Method, request: Request) -> Problem {
    let path = request.uri().path();
    Problem::with_status(
        Error::invalid(format!("{method} is not possible on {path}"))
            .with_hint("GET /openapi.yaml lists the requests that are"),
        StatusCode::METHOD_NOT_ALLOWED,
    )
}
