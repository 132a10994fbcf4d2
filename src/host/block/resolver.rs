//! Which node a path or a mount means.

use std::collections::BTreeSet;

use super::loops::Backing;
use crate::host::mounts::Mount;
use crate::host::nodes::{BlockNode, device_number};
use crate::host::root::{Root, last_part};

/// Finds the node that a path means.
pub(in crate::host) struct Resolver<'a> {
    pub(in crate::host) root: &'a Root,
    pub(in crate::host) nodes: &'a [BlockNode],
    /// What is behind each loop device.
    pub(in crate::host) loops: Vec<(String, Backing)>,
}

impl Resolver<'_> {
    /// The kernel's name for a device's path or a link to it; none if it is something else.
    pub(in crate::host) fn node(&self, path: &str) -> Option<String> {
        let by_name =
            |name: &str| self.nodes.iter().find(|node| node.name == name).map(|node| node.name.clone());
        let under_dev = |inside: &str| {
            by_name(&inside.replace('/', "!")).or_else(|| by_name(&last_part(&self.root.link(path)?)?))
        };
        // A device node may be anywhere.
        let by_number = || {
            let absolute = path.starts_with('/').then(|| self.root.at(path))?;
            self.by_number(&device_number(&absolute)?)
        };
        path.strip_prefix("/dev/").and_then(under_dev).or_else(by_number)
    }

    pub(in crate::host) fn by_number(&self, number: &str) -> Option<String> {
        self.nodes.iter().find(|node| node.number == number).map(|node| node.name.clone())
    }

    pub(in crate::host) fn node_of(&self, backing: &Backing) -> Option<String> {
        backing.device().and_then(|number| self.by_number(&number)).or_else(|| self.node(&backing.path))
    }

    /// The nodes that a mount uses, by number and by source.
    pub(in crate::host) fn mounted(&self, mount: &Mount) -> BTreeSet<String> {
        let by_source = mount.sources().filter_map(|source| self.node(source));
        self.by_number(&mount.number).into_iter().chain(by_source).collect()
    }

    /// The nodes affected by writing to that path: the device, or the loop devices on the file.
    pub(in crate::host) fn behind(&self, path: &str) -> Vec<String> {
        if !path.starts_with('/') {
            return Vec::new();
        }
        if let Some(node) = self.node(path) {
            return vec![node];
        }
        let file = Backing::at(self.root, path);
        let on_file = self.loops.iter().filter(|(_, backing)| backing.is_same(&file));
        on_file.map(|(name, _)| name.clone()).collect()
    }
}
