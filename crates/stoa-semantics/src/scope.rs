//! What the rewriting of an expression knows of its surroundings: columns, options, memory.

use std::sync::Arc;

use datafusion::common::DFSchemaRef;
use datafusion::common::config::ConfigOptions;
use datafusion::execution::memory_pool::MemoryPool;

/// What an expression can name, and the session's options.
pub(super) struct Scope<'a> {
    pub(super) schema: DFSchemaRef,
    /// What the queries around this one read, the nearest last.
    pub(super) outer: &'a [DFSchemaRef],
    pub(super) options: &'a ConfigOptions,
    /// What large results draw on.
    pub(super) memory: &'a Arc<dyn MemoryPool>,
}
