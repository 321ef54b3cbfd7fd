//! The settings themselves. This is the only place where one is declared.

use std::net::IpAddr;
use std::path::PathBuf;

use stoa_store::Secret;

use super::Machine;
use super::file_access::NamedFiles;
use super::pools::{PoolList, RuleList};
use super::scripts::{RoleNames, ScriptPaths};
use super::setting::{Setting, SettingValue, scope, settings, toml_text};
use super::value::{
    ByteSize, ByteThreshold, Count, FilePath, HivePort, LogFormat, LogLevel, PathStyle, Percent,
    Price, Slots, Threads, Webhook,
};

settings! {
    /// Where tables are stored: a directory (created if it does not exist), a `file://` URL, or
    /// `s3://bucket/prefix`.
    warehouse: String = "./stoa-data" for scope::ALL;

    /// What holds the catalog: the names of the tables, where they are, roles and grants. It is a file on a
    /// local disk, or a database of PostgreSQL: `postgres://USER@HOST/DATABASE`, whose password is best in
    /// `PGPASSWORD` or `~/.pgpass`. `auto` is `catalog.db` in a warehouse on disk, and
    /// `./stoa-data/_s3/BUCKET/PREFIX/catalog.db` for a warehouse in S3.
    catalog: String = "auto" for scope::ALL;

    /// Address to listen on. Any address other than loopback needs TLS (`tls_cert`) and
    /// `access_control`, or `insecure_listen`.
    listen: IpAddr = "127.0.0.1" for scope::SERVER;

    /// Allows `listen` to be an address that other machines can reach, even without TLS or
    /// `access_control`. Without TLS, passwords and rows can be read in transit; without
    /// `access_control`, anyone who reaches the address can read and change everything.
    insecure_listen: bool = "false" for scope::SERVER;

    /// Port for HTTP and the console; 0 chooses a free port. `stoa sql` looks for a server on this
    /// port.
    http_port: u16 = "15002" for scope::SERVER | scope::SHELL;

    /// Port for the PostgreSQL protocol; 0 chooses a free port.
    pg_port: u16 = "5433" for scope::SERVER;

    /// Port for Arrow Flight SQL; 0 chooses a free port.
    flight_port: u16 = "15003" for scope::SERVER;

    /// Port for HiveServer2's protocol (beeline, Hive's JDBC driver, PyHive); 0 chooses a free port, `none` turns it
    /// off. `auto` is 10000, and if another program uses that port, the server warns and starts without it.
    hive_port: HivePort = "auto" for scope::SERVER;

    /// Port on which daemons that share a catalog in PostgreSQL talk to each other (`docs/cluster.md`), encrypted
    /// and with certificates of their own; 0 chooses a free port, which the others learn from the catalog.
    peer_port: u16 = "0" for scope::SERVER;

    /// Port on which daemons of a cluster compute parts of each other's large statements (`docs/cluster.md`), encrypted
    /// as on `peer_port`; 0 chooses a free port, which the others learn when they need it.
    task_port: u16 = "0" for scope::SERVER;

    /// The name or address under which other daemons and clients reach this one. If empty: `listen`, or
    /// the machine's name if that is `0.0.0.0` or `::`.
    advertise: Option<String> = "" for scope::SERVER;

    /// The availability zone of the machine, for people who look at `system.daemons`.
    availability_zone: Option<String> = "" for scope::SERVER;

    /// Allows `commit_log` to be on a local disk although other daemons of the cluster are on other
    /// machines. They cannot take it over: while this machine is down, rows that are in the log and in
    /// no file yet cannot be read, and statements that change their tables wait.
    allow_local_log: bool = "false" for scope::SERVER;

    /// Maximum number of concurrent sessions of the PostgreSQL protocol; one more is refused with
    /// code 53300. HTTP, HiveServer2 and Arrow Flight SQL can have the same number of connections each: over
    /// HTTP, one more is refused with status 503, over HiveServer2 it is closed; over Flight SQL, one more waits. To make room, a
    /// connection whose client has not logged in, or sends no request, is closed first.
    max_connections: u32 = "256" for scope::SERVER;

    /// Maximum number of connections from one address to each port; one more is refused with code
    /// 53300. An IPv6 network (/64) counts as one address. `auto` is three quarters of
    /// `max_connections`, without a limit for clients on the server's own machine.
    max_connections_per_address: Count = "auto" for scope::SERVER;

    /// Seconds that a client has to log in, or to send the head of its first HTTP request or Flight
    /// SQL call. After that, the connection is closed.
    login_timeout_s: u32 = "30" for scope::SERVER;

    /// File descriptors that connections never use, so that tables, logs and spill files can always
    /// be opened. `auto` is a quarter of the process's limit (`ulimit -n`), at most 4096.
    reserved_descriptors: Count = "auto" for scope::SERVER;

    /// Memory that all queries and loads can use together; beyond it they spill to disk or fail
    /// with code 53200. The process needs more memory in addition, for caches and connections.
    memory_limit: ByteSize = "50%" for scope::ALL;

    /// Where commit logs are stored: a directory or URL, on storage that is as durable as the
    /// warehouse must be. Small writes are acknowledged once they are in a commit log. Each process
    /// has its own log there. `auto` is `_log` in the warehouse, or beside the catalog if the
    /// warehouse is in S3; with `off`, each write is a commit of files.
    commit_log: String = "auto" for scope::SERVER | scope::SHELL;

    /// Seconds that small writes wait for a commit log in an object store that does not answer. After
    /// that they fail with code 08007 and the log stops. A daemon of a cluster then ends once the
    /// store answers again, so that others take its log over; a server alone answers reports until
    /// it is restarted.
    log_store_wait_s: u64 = "120" for scope::SERVER | scope::SHELL;

    /// Memory for rows that are in the commit log and not yet in files; if it is full, writes wait.
    fresh_memory: ByteSize = "256MiB" for scope::SERVER | scope::SHELL;

    /// Turns off maintenance. Otherwise the server compacts small files in the background, expires
    /// old snapshots, applies retention, and removes files that nothing needs.
    no_maintenance: bool = "false" for scope::SERVER;

    /// Executors: threads that compute. A query uses as many as it has work for. `auto` is one per
    /// processor; more bring no gain, fewer leave processors to other programs.
    num_executors: Threads = "auto" for scope::ALL;

    /// Threads that serve connections, answer reports on the short path, and read and write files;
    /// at least as many as executors. Higher values help only with slow storage and many
    /// connections.
    io_threads: Threads = "auto" for scope::ALL;

    /// Memory for data that reports reuse: decoded columns, bounds of row groups, tails of files.
    /// With more, reports on more rows need no I/O. What reports leave of it holds columns that
    /// large scans read again and again. It is not part of `memory_limit`.
    cache_memory: ByteSize = "25%" for scope::ALL;

    /// In a cluster, how large a table's files are together from which on daemons share the table: reports on it are
    /// answered by the daemon that has their part of it in memory. Smaller tables are in the memory of each.
    shared_table_size: ByteThreshold = "3%" for scope::SERVER;

    /// In a cluster, how large the files are together that a statement reads, without those that its conditions rule
    /// out, from which on all daemons compute it. Smaller statements run on the daemon that is asked.
    distributed_scan_size: ByteThreshold = "1GiB" for scope::SERVER;

    /// A folder on a fast local disk for parts of files in S3, so that they are fetched only once
    /// even if they do not stay in memory. `auto` is `_cache` beside the catalog; `off` disables
    /// it. Not used for local files. Only one process at a time can use a folder.
    disk_cache: String = "auto" for scope::SERVER;

    /// Maximum size of `disk_cache`. A larger cache sends fewer requests to the store.
    disk_cache_size: ByteSize = "10GiB" for scope::SERVER;

    /// Starts with an empty cache. Otherwise the server records once a minute what reports use most
    /// (`hot.json` beside the catalog), and reads it into memory in the background after a start.
    no_warm_restart: bool = "false" for scope::SERVER;

    /// Queries that can run at the same time; `auto` is twice `num_executors`. Reports on the short
    /// path need no slot. More slots make each query slower and use more memory.
    query_slots: Slots = "auto" for scope::SERVER;

    /// Queries that can wait for a slot, smallest first; one more is refused with code 53300 (HTTP
    /// 429) and can be retried. With a longer queue, clients wait longer before they are refused.
    wait_queue_size: u32 = "256" for scope::SERVER;

    /// Pools of queries with their own slots, queue and limits, such as `batch slots=1 queue=20
    /// memory=2GiB timeout=10m read=50GiB`; separate several pools with `;`. The file can also define
    /// each as a table `[[pools]]` (`docs/operations.md`). A statement that takes longer than `timeout`
    /// or reads more than `read` is stopped. Omitted values are those of the pool `default`. Slots of
    /// pools add up: more of them make each query slower.
    pools: PoolList = "" for scope::SERVER;

    /// Which statements use which pool, such as `user=etl* -> batch; application=dbt protocol=http
    /// -> batch`. The first rule that matches applies, `*` stands for any text, and without a match
    /// the pool is `default`. The file can also define each as a table `[[workload_rules]]`.
    workload_rules: RuleList = "" for scope::SERVER;

    /// The server's certificate (PEM), followed by intermediate certificates if there are any. With
    /// it, all protocols are encrypted, and unencrypted connections are refused (`docs/tls.md`). A
    /// new certificate is used without a restart.
    tls_cert: Option<FilePath> = "" for scope::SERVER;

    /// The private key of `tls_cert` (PEM, without a passphrase).
    tls_key: Option<FilePath> = "" for scope::SERVER;

    /// Certificates of authorities (PEM). If set, every client of every protocol needs a
    /// certificate from one of them, in addition to its password.
    tls_client_ca: Option<FilePath> = "" for scope::SERVER;

    /// Whether clients must log in as a role with a password, and can do only what was granted to
    /// it (`docs/access.md`). Create a superuser first: `stoa sql --warehouse … -c "CREATE ROLE
    /// …"`.
    access_control: bool = "false" for scope::SERVER;

    /// Which files on this machine statements can name (`COPY … FROM 'file'` and its
    /// `reject_file`): `off`, or a list of folders such as `/srv/exports:/srv/more`. Symbolic links
    /// are resolved first. Only people you trust should be able to write to these folders. `auto`
    /// is `off` for a server, and `/` (all files) for `stoa sql` on a warehouse. With
    /// `access_control`, only superusers can name files.
    file_access: NamedFiles = "auto" for scope::SERVER | scope::SHELL;

    /// Programs that statements can run rows through (`TRANSFORM` in HiveQL, `docs/hiveql.md`): `off`, or a list of
    /// files and folders such as `/usr/bin/awk:/srv/scripts`. A listed file can be run with any arguments, so an
    /// interpreter (`/usr/bin/python3`) can run anything. Files in a listed folder can be run, and added with `ADD
    /// FILE`. Programs run as the server's own account: list only what may do with it what it can, and let only people
    /// you trust write to the folders. With `access_control`, only superusers and `script_roles` can run programs.
    scripts: ScriptPaths = "off" for scope::SERVER;

    /// Roles, separated by commas, whose members can run the programs of `scripts`, in addition to superusers.
    script_roles: RoleNames = "" for scope::SERVER;

    /// Address of the S3 service, such as `https://s3.example.com`. If empty:
    /// `AWS_ENDPOINT_URL_S3`, `AWS_ENDPOINT_URL`, the profile's endpoint, or Amazon's.
    s3_endpoint: Option<String> = "" for scope::ALL;

    /// Region of the buckets. If empty: `AWS_REGION`, `AWS_DEFAULT_REGION`, the profile's region,
    /// or `us-east-1`.
    s3_region: Option<String> = "" for scope::ALL;

    /// Access key. If empty: `AWS_ACCESS_KEY_ID`, a role (`AWS_WEB_IDENTITY_TOKEN_FILE`), the
    /// profile `AWS_PROFILE` of `~/.aws`, the container's or the machine's role.
    s3_access_key_id: Option<String> = "" for scope::FILE_ONLY;

    /// The secret of `s3_access_key_id`. It is never shown.
    s3_secret_access_key: Option<Secret> = "" for scope::FILE_ONLY;

    /// Whether the bucket's name is the first part of the path (`true`) or of the host (`false`).
    /// `auto` is `true` with an endpoint, and `false` for Amazon's.
    s3_path_style: PathStyle = "auto" for scope::ALL;

    /// Allows plain HTTP to an endpoint on another machine: the data can be read in transit.
    s3_allow_http: bool = "false" for scope::ALL;

    /// Price of a million reads (GET, HEAD), in dollars; used only to estimate costs.
    s3_read_price: Price = "0.40" for scope::SERVER;

    /// Price of a million writes and listings (PUT, POST, LIST), in dollars; used only to estimate
    /// costs.
    s3_write_price: Price = "5.00" for scope::SERVER;

    /// Directory for data that does not fit into memory; if empty, the system's directory for
    /// temporary files. Use a fast local disk with room for the largest sort. Each process makes
    /// a folder of its own in it, and removes those that killed ones have left behind.
    spill_dir: Option<PathBuf> = "" for scope::ALL;

    /// Seconds that running queries can continue after a signal to stop; then they are cancelled.
    /// The process ends at most 60 s later.
    shutdown_grace_s: u64 = "10" for scope::SERVER;

    /// URL to which alerts are posted as JSON, such as `https://hooks.example.com/…`
    /// (`docs/operations.md`). It is never shown, as it may contain a secret. If empty, alerts are only
    /// in the log, in the console and in `/metrics`. Use the same value for all daemons of a cluster.
    alert_webhook: Option<Webhook> = "" for scope::FILE_ONLY;

    /// Seconds that something must be wrong before an alert goes on, if it may pass by itself. Also the
    /// time in which `alert_refused_statements` counts.
    alert_after_s: u32 = "60" for scope::SERVER;

    /// Percentage of the disk of a local commit log that may be in use before an alert goes on.
    alert_disk_percent: Percent = "90" for scope::SERVER;

    /// Statements that may be refused within `alert_after_s` before an alert goes on: too many waited, or
    /// memory or another limit was too small. Missing rights do not count.
    alert_refused_statements: u64 = "100" for scope::SERVER;

    /// What to log: `error`, `warn`, `info`, `debug`, `trace`, or filters such as
    /// `info,stoa_query=debug`. Logs go to stderr.
    log_level: LogLevel = "info" for scope::ALL;

    /// Format of the log: `text` for people, `json` for log collectors.
    log_format: LogFormat = "text" for scope::ALL;
}
