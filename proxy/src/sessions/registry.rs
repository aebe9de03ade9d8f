//! The sessions of a daemon, found by id or by token.

use std::sync::Arc;

use dashmap::{DashMap, mapref::entry::Entry};
use exeat_config::{SessionId, TokenHash};

use super::Session;

/// All sessions of a daemon. Reads are sharded and never wait for a swap of policies.
#[derive(Debug)]
pub struct Registry {
    by_id: DashMap<SessionId, Arc<Session>>,
    /// For `Bearer`, which names no session. Keyed by a hash that no client can choose, so that a lookup's time
    /// tells nothing about a token.
    by_token: DashMap<[u8; 32], Arc<Session>>,
    /// Compared with when there is no session to compare with.
    nobody: TokenHash,
}

impl Default for Registry {
    fn default() -> Self {
        Self { by_id: DashMap::new(), by_token: DashMap::new(), nobody: TokenHash::of(b"") }
    }
}

impl Registry {
    /// Adds a session; false, and nothing changes, when its id is taken.
    pub fn insert(&self, session: Arc<Session>) -> bool {
        match self.by_id.entry(session.id.clone()) {
            Entry::Occupied(_) => false,
            Entry::Vacant(vacant) => {
                if let Some(token) = &session.token {
                    self.by_token.insert(*token.as_bytes(), Arc::clone(&session));
                }
                vacant.insert(session);
                true
            }
        }
    }

    /// Ends a session and forgets it.
    pub fn remove(&self, id: &SessionId) -> Option<Arc<Session>> {
        let (_, session) = self.by_id.remove(id)?;
        if let Some(token) = &session.token {
            self.by_token.remove_if(token.as_bytes(), |_, held| held.id == *id);
        }
        session.end();
        Some(session)
    }

    /// The session of this id.
    pub fn get(&self, id: &SessionId) -> Option<Arc<Session>> {
        self.by_id.get(id).map(|entry| Arc::clone(&entry))
    }

    /// The session with this id and this token. Takes the same time for an unknown id as for a wrong token.
    pub fn by_password(&self, user: &[u8], presented: &TokenHash) -> Option<Arc<Session>> {
        let id = std::str::from_utf8(user).ok().and_then(SessionId::new);
        let session = id.and_then(|id| self.get(&id));
        let held = session.as_ref().and_then(|session| session.token);
        let matches = held.as_ref().unwrap_or(&self.nobody) == presented;
        session.filter(|_| matches && held.is_some())
    }

    /// The session with this token.
    pub fn by_token(&self, presented: &TokenHash) -> Option<Arc<Session>> {
        self.by_token.get(presented.as_bytes()).map(|entry| Arc::clone(&entry))
    }

    /// Every session, in no order.
    pub fn all(&self) -> Vec<Arc<Session>> {
        self.by_id.iter().map(|entry| Arc::clone(&entry)).collect()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.by_id.len()
    }

    /// True when there is none.
    pub fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use exeat_config::{NetworkPolicy, Token, settings::Mode};

    use super::*;
    use crate::{decide::Policy, sessions::ProfileSlot};

    fn slot() -> Arc<ProfileSlot> {
        let policy = Policy::compile(&NetworkPolicy::default(), Mode::Enforce, false, 1);
        Arc::new(ProfileSlot::new("default".into(), Arc::new(policy)))
    }

    fn session(id: &str, token: &Token) -> Arc<Session> {
        Arc::new(Session::with_token(SessionId::new(id).unwrap(), None, token.hash(), slot()))
    }

    #[test]
    fn a_session_is_found_by_its_own_id_and_token_alone() {
        let registry = Registry::default();
        let (one, two) = (Token::generate().unwrap(), Token::generate().unwrap());
        assert!(registry.insert(session("one", &one)));
        assert!(registry.insert(session("two", &two)));
        assert!(!registry.insert(session("two", &one)), "an id is taken once");

        assert_eq!(registry.by_password(b"one", &one.hash()).unwrap().id.as_str(), "one");
        assert!(registry.by_password(b"one", &two.hash()).is_none());
        assert!(registry.by_password(b"three", &one.hash()).is_none());
        assert!(registry.by_password(b"\xff", &one.hash()).is_none());
        assert!(registry.by_password(b"", &TokenHash::of(b"")).is_none());
        assert_eq!(registry.by_token(&two.hash()).unwrap().id.as_str(), "two");

        let gone = registry.remove(&SessionId::new("two").unwrap()).unwrap();
        assert!(gone.has_ended());
        assert!(registry.by_token(&two.hash()).is_none());
        assert!(registry.by_password(b"two", &two.hash()).is_none());
    }

    #[test]
    fn a_session_without_a_token_has_no_password() {
        let registry = Registry::default();
        let open = Session::without_token(SessionId::new("open").unwrap(), None, slot());
        assert!(registry.insert(Arc::new(open)));
        assert!(registry.by_password(b"open", &TokenHash::of(b"")).is_none());
        assert!(registry.by_token(&TokenHash::of(b"")).is_none());
    }

    #[test]
    fn places_are_bounded_and_given_back() {
        let session = session("one", &Token::generate().unwrap());
        let first = session.enter(1).unwrap();
        assert!(session.enter(1).is_none());
        drop(first);
        assert_eq!(session.open_flows(), 0);
        assert!(session.enter(1).is_some());

        let lookups: Vec<_> = std::iter::from_fn(|| session.look_up()).collect();
        assert_eq!(lookups.len(), crate::limits::MAX_LOOKUPS_PER_SESSION);
        assert!(session.enter(1).is_some(), "flows and lookups are counted apart");
    }
}
