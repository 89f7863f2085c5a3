//! The nodes, and calls to all of them at once. A call continues when no caller waits for its
//! answers any more: late votes belong to the grant, and a release must not be cut short by the
//! caller's cancellation.

use std::sync::{Arc, Mutex};

use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::backend::Fut;
use crate::backend::redis::RedisBackend;
use crate::locks::lock;

pub(super) type Node = Arc<RedisBackend>;

pub(super) struct Nodes {
    nodes: Vec<Node>,
    /// Ends with the backend; each task ends before that by the time-out of its call.
    tasks: Mutex<JoinSet<()>>,
}

impl Nodes {
    pub(super) fn new(nodes: Vec<Node>) -> Self {
        Self {
            nodes,
            tasks: Mutex::default(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    pub(super) fn all(&self) -> &[Node] {
        &self.nodes
    }

    /// Runs `work` in the background, even without a caller.
    pub(super) fn background(&self, work: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = lock(&self.tasks);
        while tasks.try_join_next().is_some() {}
        tasks.spawn(work);
    }

    /// Asks every node at once; answers arrive as (index of the node, answer), as they come.
    pub(super) fn ask<T: Send + 'static>(
        &self,
        question: impl Fn(Node) -> Fut<'static, T>,
    ) -> mpsc::Receiver<(usize, T)> {
        let (told, answers) = mpsc::channel(self.nodes.len().max(1));
        for (at, node) in self.nodes.iter().enumerate() {
            let (asking, told) = (question(Arc::clone(node)), told.clone());
            self.background(async move {
                let answer = asking.await;
                // The caller may be gone.
                told.send((at, answer)).await.ok();
            });
        }
        answers
    }
}
