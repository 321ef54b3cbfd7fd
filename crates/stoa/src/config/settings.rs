//! The settings themselves. This is the only place where one is declared.

use std::net::IpAddr;
use std::path::PathBuf;

use stoa_store::Secret;

use super::Machine;
use super::file_access::NamedFiles;
use super::pools::{PoolList, RuleList};
use super::setting::{Setting, SettingValue, scope, settings, toml_text};
use super::value::{
    ByteSize, Count, FilePath, LogFormat, LogLevel, PathStyle, Price, Slots, Threads,
};

settings! {
    /// Where tables are kept: a directory (made if it is not there), a `file://` URL, or
    /// `s3://bucket/prefix`.
    warehouse: String = "./stoa-data" for scope::ALL;

    /// The file on a local disk that names the tables. `auto` is `catalog.db` in a warehouse on
    /// disk, and `./stoa-data/_s3/BUCKET/PREFIX/catalog.db` for one in S3.
    catalog: String = "auto" for scope::ALL;

    /// Address to listen on. Any address but loopback's needs TLS (`tls_cert`) and `access_control`, or
    /// `insecure_listen`.
    listen: IpAddr = "127.0.0.1" for scope::SERVER;

    /// Allows `listen` to be an address that other machines reach, although TLS or `access_control` is
    /// missing: without TLS, passwords and rows can be read on the way; without `access_control`,
    /// anyone who reaches the address can read and change everything.
    insecure_listen: bool = "false" for scope::SERVER;

    /// Port for HTTP and the console; 0 takes a free one. `stoa sql` looks for a server here.
    http_port: u16 = "15002" for scope::SERVER | scope::SHELL;

    /// Port for the PostgreSQL protocol; 0 takes a free one.
    pg_port: u16 = "5433" for scope::SERVER;

    /// Port for Arrow Flight SQL; 0 takes a free one.
    flight_port: u16 = "15003" for scope::SERVER;

    /// Most sessions of the PostgreSQL protocol at once; one more is refused with code 53300. The same
    /// number of connections may be open for HTTP, where one more is refused with status 503, and for
    /// Arrow Flight SQL, where one more waits. A connection whose client has not logged in, or sends no
    /// request, is closed first to make room.
    max_connections: u32 = "256" for scope::SERVER;

    /// Most connections from one address to each port; one more is refused with code 53300. An IPv6
    /// network (/64) counts as one address. `auto` is three quarters of `max_connections`, and no limit
    /// for clients on the server's own machine.
    max_connections_per_address: Count = "auto" for scope::SERVER;

    /// Seconds that a client has to log in, or to send the head of its first HTTP request or Flight
    /// SQL call. After that the connection is closed.
    login_timeout_s: u32 = "30" for scope::SERVER;

    /// File descriptors that connections never take, so that tables, logs and spill files can always
    /// be opened. `auto` is a quarter of the process's limit (`ulimit -n`), 4096 at most.
    reserved_descriptors: Count = "auto" for scope::SERVER;

    /// Memory that all queries and loads may use together; beyond it they spill to disk or fail
    /// with code 53200. The process itself needs some more (caches, buffers of connections).
    memory_limit: ByteSize = "50%" for scope::ALL;

    /// Where commit logs are: a directory or URL, on storage that survives what the warehouse must
    /// survive. Small writes are acknowledged once they are in one. Each process has a log of its own
    /// there. `auto` is `_log` in the warehouse, or beside the catalog if the warehouse is in S3; `off`
    /// makes each write a commit of files.
    commit_log: String = "auto" for scope::SERVER | scope::SHELL;

    /// Memory for rows that are in the commit log and not yet in files; beyond it, writes wait.
    fresh_memory: ByteSize = "256MiB" for scope::SERVER | scope::SHELL;

    /// Leaves the tables alone. Otherwise the server looks after them in the background: it compacts
    /// small files, forgets old snapshots, removes what retention says and files that nothing needs.
    no_maintenance: bool = "false" for scope::SERVER;

    /// Executors: threads that compute. A query uses as many as it has work for. More than the machine
    /// has processors gains nothing; fewer leave some to other programs.
    num_executors: Threads = "auto" for scope::ALL;

    /// Threads that serve connections, answer recognised reports, and read and write files; at least
    /// as many as executors. More help only where the storage is slow and connections are many.
    io_threads: Threads = "auto" for scope::ALL;

    /// Memory for what reports keep of data files between them: decoded columns, bounds of row groups,
    /// tails of files. All of it is counted. With more, reports on more rows need no I/O; it is not
    /// part of `memory_limit`.
    cache_memory: ByteSize = "25%" for scope::ALL;

    /// A folder on a fast local disk in which chunks of files in S3 are kept, too, so that they are
    /// fetched once whatever happens to the memory. `auto` is `_cache` beside the catalog; `off` keeps
    /// none. Files on local disks need it not. One process at a time uses a folder.
    disk_cache: String = "auto" for scope::SERVER;

    /// Bytes that `disk_cache` may take. With more, fewer requests go to the store.
    disk_cache_size: ByteSize = "10GiB" for scope::SERVER;

    /// Begins with an empty memory. Otherwise the server notes once a minute what reports ask for most
    /// (`hot.json` beside the catalog), and reads it again in the background after a start.
    no_warm_restart: bool = "false" for scope::SERVER;

    /// Queries that may compute at the same time; `auto` is twice `num_executors`. Recognised reports
    /// need no slot. More slots make each query slower and take more memory.
    query_slots: Slots = "auto" for scope::SERVER;

    /// Queries that may wait for a slot, smallest first; one more is refused with code 53300 (HTTP 429),
    /// to be sent again. A longer queue makes clients wait longer before they know.
    wait_queue_size: u32 = "256" for scope::SERVER;

    /// Pools of queries with slots, a queue and bounds of their own, such as
    /// `batch slots=1 queue=20 memory=2GiB timeout=10m read=50GiB`; several with `;` between them.
    /// A statement that takes longer than `timeout` or reads more than `read` is ended. What is left out
    /// is as in the pool `default`. Slots of pools add up: more of them make each query slower.
    pools: PoolList = "" for scope::SERVER;

    /// Who goes into which pool, such as `user=etl* -> batch; application=dbt protocol=http -> batch`; the
    /// first rule that is met counts, `*` stands for any text, and whoever meets none is in `default`.
    workload_rules: RuleList = "" for scope::SERVER;

    /// The server's certificate (PEM), followed by the intermediate ones if there are any. With it, all
    /// protocols are encrypted and connections that are not are refused (`docs/tls.md`). A new
    /// certificate is used without a restart.
    tls_cert: Option<FilePath> = "" for scope::SERVER;

    /// The private key of `tls_cert` (PEM, without a passphrase).
    tls_key: Option<FilePath> = "" for scope::SERVER;

    /// Certificates of authorities (PEM). If set, every client of every protocol needs a certificate
    /// that one of them issued, in addition to its password.
    tls_client_ca: Option<FilePath> = "" for scope::SERVER;

    /// Whether clients must log in as a role, with its password, and may do only what was granted to
    /// it (`docs/access.md`). Make a superuser before: `stoa sql --warehouse … -c "CREATE ROLE …"`.
    access_control: bool = "false" for scope::SERVER;

    /// Which files of this machine statements may name (`COPY … FROM 'file'` and its `reject_file`): `off`,
    /// or those in folders, such as `/srv/exports:/srv/more`, wherever symbolic links lead. Only people
    /// you trust should be able to write to these folders. `auto` is `off` for a server, and `/` (all
    /// files) for `stoa sql` on a warehouse. With `access_control`, only superusers name files.
    file_access: NamedFiles = "auto" for scope::SERVER | scope::SHELL;

    /// Address of the S3 service, such as `https://s3.example.com`; empty means `AWS_ENDPOINT_URL_S3`,
    /// `AWS_ENDPOINT_URL`, the profile's, else Amazon's.
    s3_endpoint: Option<String> = "" for scope::ALL;

    /// Region of the buckets; empty means `AWS_REGION`, `AWS_DEFAULT_REGION`, the profile's, else
    /// `us-east-1`.
    s3_region: Option<String> = "" for scope::ALL;

    /// Access key; empty means `AWS_ACCESS_KEY_ID`, a role (`AWS_WEB_IDENTITY_TOKEN_FILE`), the profile
    /// `AWS_PROFILE` of `~/.aws`, the container's or the machine's role.
    s3_access_key_id: Option<String> = "" for scope::FILE_ONLY;

    /// The secret of `s3_access_key_id`. It is never shown.
    s3_secret_access_key: Option<Secret> = "" for scope::FILE_ONLY;

    /// Whether the bucket's name is the first part of the path (`true`) or of the host (`false`).
    /// `auto` is `true` with an endpoint, `false` for Amazon's.
    s3_path_style: PathStyle = "auto" for scope::ALL;

    /// Allows an endpoint on another machine to be plain HTTP: whoever is on the way can read the data.
    s3_allow_http: bool = "false" for scope::ALL;

    /// What a million reads (GET, HEAD) cost, in dollars; for the estimate of costs only.
    s3_read_price: Price = "0.40" for scope::SERVER;

    /// What a million writes and listings (PUT, POST, LIST) cost, in dollars; for the estimate of
    /// costs only.
    s3_write_price: Price = "5.00" for scope::SERVER;

    /// Directory for what does not fit into memory; empty means the system's directory for temporary
    /// files. It should be a fast local disk with room for the largest sort.
    spill_dir: Option<PathBuf> = "" for scope::ALL;

    /// After a signal to stop, how many seconds running queries may go on before they are cancelled.
    shutdown_grace_s: u64 = "10" for scope::SERVER;

    /// What to log: `error`, `warn`, `info`, `debug`, `trace`, or filters such as
    /// `info,stoa_query=debug`. Logs go to stderr.
    log_level: LogLevel = "info" for scope::ALL;

    /// How to log: `text` for people, `json` for collectors.
    log_format: LogFormat = "text" for scope::ALL;
}
