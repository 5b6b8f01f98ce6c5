//! TEMP
use super::{Coordinator, CutError};
use crate::protocol::{QueryRequest, QueryResponse};
#[derive(Debug, thiserror::Error)]
pub enum QueryError { #[error(transparent)] Ask(CutError), #[error(transparent)] Cut(CutError), #[error(transparent)] Rows(CutError) }
impl Coordinator {
    pub async fn query(&self, _r: QueryRequest) -> Result<QueryResponse, QueryError> {
        Err(QueryError::Ask(CutError::Unknown(0)))
    }
}
