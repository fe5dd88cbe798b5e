//! The file that `standpipe config init` writes.

/// Short, commented, and usable as it is; what is commented out is right too.
pub(super) const EXAMPLE: &str = r#"# Standpipe: who shares which quota.
# `standpipe config check` checks it, `standpipe config show --origin` shows what is in force.

# Where the ledger is kept: file (this machine), file:/path, memory, redis://host
#store = "file"

# Pools that are not described here are refused, so that a slip in a name is noticed.
#open_pools = false

# One pool per quota that you share, named provider/model-or-scope.
# Rates are N/[n](ms|s|min|h|d) with k, M, G for thousands, millions, billions.
[pool."example/api"]
requests = "60/min"                 # in any minute
parallel = 5                        # at most five calls in flight

#[pool."anthropic/sonnet"]
#provider = "anthropic"
#requests = "1000/min"
#input_tokens = "2M/min"
#output_tokens = "400k/min"
#margin = "auto"                    # or "20%": the share of each rate that is left unused

#[pool."github/core"]
#provider = "github"
#requests = { rate = "5000/h", resets = "provider" }
#content = ["80/min", "500/h"]
#parallel = 100

# Agents need no table. Say something about those that matter more, or less.
#[agent.release]
#priority = "critical"              # critical, standard or background
#floor = "25%"                      # kept for it while it is active

#[agent.crawler]
#priority = "background"
#cap = { requests = "10/min" }      # the most it may use
"#;
