//! The container and the unit that the path of a cgroup names.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{DirEntryExt, MetadataExt};
use std::path::PathBuf;

/// The maximum number of cgroups that are searched for an id; a busy machine has fewer.
const CGROUPS: usize = 1 << 14;
/// The length of a short container id, as runtimes show it.
const SHORT: usize = 12;
/// The length of a short pod id.
const SHORT_POD: usize = 8;

/// Scopes of containers under systemd: prefix of the name, and runtime.
const SCOPES: [(&str, &str); 5] = [
    ("docker-", "docker"),
    ("libpod-", "podman"),
    ("cri-containerd-", "containerd"),
    ("crio-", "cri-o"),
    ("nerdctl-", "containerd"),
];
/// Folders of containers without systemd, and runtimes.
const FOLDERS: [(&str, &str); 5] =
    [("docker", "docker"), ("libpod_parent", "podman"), ("default", "containerd"), ("lxc", "lxc"), ("ecs", "ecs")];

/// What the path of a cgroup names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct CgroupOrigin {
    /// The container's runtime, and its short id or name.
    pub container: Option<String>,
    /// The systemd unit; for a container, the unit inside it.
    pub unit: Option<String>,
}

impl CgroupOrigin {
    /// Parses a path. The names are conventions of container runtimes and of systemd; other names are ignored.
    pub(super) fn from_path(path: &str) -> Self {
        let parts: Vec<_> = path.split('/').filter(|part| !part.is_empty()).collect();
        let found = (0..parts.len()).rev().find_map(|at| Some((at, container(&parts, at)?)));
        match found {
            Some((at, container)) => {
                let container = match parts[..at].iter().rev().find_map(|part| pod(part)) {
                    Some(pod) => format!("{container} of pod {pod}"),
                    None => container,
                };
                Self { container: Some(container), unit: unit(&parts[at + 1..]) }
            }
            None => Self { container: None, unit: unit(&parts) },
        }
    }
}

/// The path of a process's cgroup in the text of `/proc/PID/cgroup`; of several hierarchies, the most specific path.
pub(super) fn path(text: &str) -> Option<String> {
    let mut paths: Vec<_> = text.lines().filter_map(hierarchy).collect();
    let rank = |path: &str| match CgroupOrigin::from_path(path) {
        CgroupOrigin { container: Some(_), .. } => 0,
        CgroupOrigin { unit: Some(_), .. } => 1,
        _ => 2 + u8::from(path == "/"),
    };
    // Among equally specific paths, the unified hierarchy comes first, then that of systemd.
    paths.sort_by_key(|(order, path)| (rank(path), *order));
    paths.first().map(|(_, path)| (*path).to_owned())
}

/// The path of the cgroup with this id, if it is in the unified hierarchy and visible from here.
pub(super) fn path_of(number: u64) -> Option<String> {
    #[expect(clippy::disallowed_methods, reason = "cgroupfs shows the current cgroups")]
    let mounts = fs::read("/proc/thread-self/mountinfo").ok()?;
    let Mount { top, root } = mounts.split(|byte| *byte == b'\n').find_map(mounted)?;
    if fs::metadata(&root).is_ok_and(|data| data.ino() == number) {
        return Some(top.to_string_lossy().into_owned());
    }
    let (mut folders, mut seen) = (vec![root.clone()], 0);
    while let Some(folder) = folders.pop() {
        // A cgroup that is gone or not readable is skipped.
        let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
        for entry in entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
            if entry.ino() == number {
                return Some(top.join(entry.path().strip_prefix(&root).ok()?).to_string_lossy().into_owned());
            }
            seen += 1;
            if seen > CGROUPS {
                return None;
            }
            folders.push(entry.path());
        }
    }
    None
}

/// Where the unified hierarchy, or its visible part, is mounted.
#[derive(Debug, PartialEq, Eq)]
struct Mount {
    /// The path of the mount's root cgroup in the hierarchy, and so in `/proc/PID/cgroup`.
    top: PathBuf,
    /// The mount point.
    root: PathBuf,
}

/// The mount of the unified hierarchy, if this line of `/proc/PID/mountinfo` (proc(5)) describes it. Paths may hold any bytes.
fn mounted(line: &[u8]) -> Option<Mount> {
    let mut fields = line.split(|byte| *byte == b' ');
    let (top, root) = (fields.nth(3)?, fields.next()?);
    // Any number of optional fields, and then a dash.
    fields.find(|field| *field == b"-")?;
    (fields.next()? == b"cgroup2").then(|| Mount { top: unescaped(top), root: unescaped(root) })
}

/// Decodes a path: the kernel writes spaces, line ends and backslashes in octal, such as `\040`.
fn unescaped(mut field: &[u8]) -> PathBuf {
    let mut path = Vec::with_capacity(field.len());
    while let Some((first, rest)) = field.split_first() {
        let (byte, rest) = match rest {
            [high @ b'0'..=b'3', middle @ b'0'..=b'7', low @ b'0'..=b'7', rest @ ..] if *first == b'\\' => {
                ((high - b'0') << 6 | (middle - b'0') << 3 | (low - b'0'), rest)
            }
            rest => (*first, rest),
        };
        path.push(byte);
        field = rest;
    }
    OsString::from_vec(path).into()
}

/// Parses `0::/system.slice/nginx.service` into the rank of its hierarchy, and the path.
fn hierarchy(line: &str) -> Option<(u8, &str)> {
    let mut fields = line.splitn(3, ':');
    let (_, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
    let order = match controllers {
        "" => 0,
        "name=systemd" => 1,
        _ => 2,
    };
    Some((order, path.strip_suffix(" (deleted)").unwrap_or(path)))
}

/// The container that part `at` of a path names.
fn container(parts: &[&str], at: usize) -> Option<String> {
    let part = parts[at];
    if let Some(name) = part.strip_prefix("lxc.payload.") {
        return Some(format!("lxc {name}"));
    }
    let above = at.checked_sub(1).map(|above| parts[above]);
    if above == Some("lxc") {
        return Some(format!("lxc {part}"));
    }
    if let Some(scope) = part.strip_suffix(".scope") {
        // The monitor of a container (`libpod-conmon-`) has the container's id, but is a process outside it.
        return SCOPES
            .iter()
            .find_map(|(begin, maker)| Some(format!("{maker} {}", number(scope.strip_prefix(begin)?)?)));
    }
    // A runtime that is only partly configured for systemd: `kubepods-...-pod....slice:cri-containerd:NUMBER`.
    if let Some((before, found)) = part.rsplit_once(':') {
        let runtime = before.rsplit(':').next().unwrap_or_default();
        let maker = SCOPES.iter().find(|(begin, _)| begin.trim_end_matches('-') == runtime);
        return Some(format!("{} {}", maker.map_or("container", |(_, maker)| maker), number(found)?));
    }
    let found = number(part)?;
    let maker = parts[..at].iter().rev().find_map(|part| FOLDERS.iter().find(|(folder, _)| folder == part));
    Some(format!("{} {found}", maker.map_or("container", |(_, maker)| maker)))
}

/// The short form of a container id of 64 hexadecimal digits.
fn number(text: &str) -> Option<&str> {
    let is_one = text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_one.then(|| &text[..SHORT])
}

/// The short id of a Kubernetes pod: `kubepods-burstable-pod1b2c....slice`, `pod1b2c...`.
fn pod(part: &str) -> Option<&str> {
    let part = part.split(':').next().unwrap_or(part);
    let part = part.strip_suffix(".slice").unwrap_or(part);
    let number = match part.strip_prefix("kubepods") {
        Some(rest) => rest.rsplit_once("-pod")?.1,
        None => part.strip_prefix("pod")?,
    };
    let is_one = number.len() >= 32 && number.bytes().all(|byte| byte.is_ascii_hexdigit() || b"-_".contains(&byte));
    is_one.then(|| &number[..SHORT_POD])
}

/// The innermost unit, or the innermost slice if there is no unit.
fn unit(parts: &[&str]) -> Option<String> {
    let ends = |ends: &[&str]| {
        let has = |part: &&&str| ends.iter().any(|end| part.len() > end.len() && part.ends_with(end));
        // systemd puts an underscore before names that look like a kernel file (`_memory.service`) or start with an underscore.
        parts.iter().rev().find(has).map(|part| part.strip_prefix('_').unwrap_or(part).to_owned())
    };
    ends(&[".service", ".scope", ".socket", ".mount", ".swap"]).or_else(|| ends(&[".slice"]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const A: &str = "3f2a9c0b1d2e4f5061728394a5b6c7d8e9f00112233445566778899aabbccddee";

    /// A path (`*` stands for a container id), the expected container, and the expected unit.
    const PATHS: [(&str, &str, &str); 31] = [
        ("/", "", ""),
        ("", "", ""),
        ("/user/batch", "", ""),
        ("/system.slice/nginx.service", "", "nginx.service"),
        ("/system.slice/system-getty.slice/getty@tty1.service", "", "getty@tty1.service"),
        ("/user.slice/user-1000.slice/session-3.scope", "", "session-3.scope"),
        (
            "/user.slice/user-1000.slice/user@1000.service/app.slice/app-firefox-2345.scope",
            "",
            "app-firefox-2345.scope",
        ),
        ("/user.slice/user-1000.slice", "", "user-1000.slice"),
        ("/init.scope", "", "init.scope"),
        ("/system.slice/_memory.service", "", "memory.service"),
        ("/system.slice/__own.service", "", "_own.service"),
        ("/system.slice/docker-*.scope", "docker 3f2a9c0b1d2e", ""),
        ("/system.slice/docker-*.scope/system.slice/nginx.service", "docker 3f2a9c0b1d2e", "nginx.service"),
        ("/docker/*", "docker 3f2a9c0b1d2e", ""),
        ("/docker/*/child", "docker 3f2a9c0b1d2e", ""),
        ("/docker/buildx/*", "docker 3f2a9c0b1d2e", ""),
        ("/system.slice/docker.service", "", "docker.service"),
        ("/machine.slice/libpod-*.scope/container", "podman 3f2a9c0b1d2e", ""),
        ("/machine.slice/libpod-conmon-*.scope", "", "libpod-conmon-*.scope"),
        ("/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-*.scope", "podman 3f2a9c0b1d2e", ""),
        ("/libpod_parent/*", "podman 3f2a9c0b1d2e", ""),
        (
            "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1b2c3d4e_1111_2222_3333_444455556666.slice/\
             cri-containerd-*.scope",
            "containerd 3f2a9c0b1d2e of pod 1b2c3d4e",
            "",
        ),
        (
            "/kubepods.slice/kubepods-pod1b2c3d4e_1111_2222_3333_444455556666.slice/crio-*.scope",
            "cri-o 3f2a9c0b1d2e of pod 1b2c3d4e",
            "",
        ),
        (
            "/kubepods/besteffort/pod1b2c3d4e-1111-2222-3333-444455556666/*",
            "container 3f2a9c0b1d2e of pod 1b2c3d4e",
            "",
        ),
        (
            "/system.slice/containerd.service/kubepods-besteffort-pod1b2c3d4e_1111_2222_3333_444455556666.slice:\
             cri-containerd:*",
            "containerd 3f2a9c0b1d2e",
            "",
        ),
        ("/default/*", "containerd 3f2a9c0b1d2e", ""),
        ("/ecs/1b2c3d4e11112222333344445555/*", "ecs 3f2a9c0b1d2e", ""),
        ("/lxc.payload.web/system.slice/nginx.service", "lxc web", "nginx.service"),
        ("/lxc/web", "lxc web", ""),
        (r"/machine.slice/machine-qemu\x2d1\x2dvm.scope/libvirt", "", r"machine-qemu\x2d1\x2dvm.scope"),
        ("/../../docker-3f2a.scope", "", "docker-3f2a.scope"),
    ];

    #[test]
    fn paths_name_containers_and_units() {
        let filled = |text: &str| text.replace('*', &A[..64]);
        let some = |text: &str| (!text.is_empty()).then(|| filled(text));
        for (path, container, unit) in PATHS {
            let expected = CgroupOrigin { container: some(container), unit: some(unit) };
            assert_eq!(CgroupOrigin::from_path(&filled(path)), expected, "{path}");
        }
    }

    #[test]
    fn the_most_specific_hierarchy_is_used() {
        let docker = format!("/docker/{}", &A[..64]);
        let cases = [
            ("0::/system.slice/a.service\n", Some("/system.slice/a.service")),
            ("4:memory:/\n1:name=systemd:/user.slice/user-0.slice\n0::/\n", Some("/user.slice/user-0.slice")),
            ("9:name=systemd:/\n4:memory:/jobs/1\n3:cpuset:/\n0::/\n", Some("/jobs/1")),
            (&format!("4:memory:{docker}\n0::/system.slice/a.service\n"), Some(&*docker)),
            ("2:cpu:/\n0::/gone (deleted)\n", Some("/gone")),
            ("0::/a:b\n", Some("/a:b")),
            ("2:cpu,cpuacct:/\n0::/\n", Some("/")),
            ("nonsense\n", None),
            ("", None),
        ];
        for (text, expected) in cases {
            assert_eq!(path(text).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn the_unified_hierarchy_is_where_it_is_mounted() {
        let mounted = |line: &str| mounted(line.as_bytes()).map(|mount| (mount.top, mount.root));
        let is = |top: &str, root: &str| Some((PathBuf::from(top), PathBuf::from(root)));
        let line = "35 24 0:29 / /sys/fs/cgroup/unified rw,relatime shared:9 - cgroup2 cgroup2 rw,nsdelegate";
        assert_eq!(mounted(line), is("/", "/sys/fs/cgroup/unified"));
        let line = r"35 24 0:29 /my\040jobs /mnt/a\040\134b\011\012 rw shared:9 master:1 - cgroup2 none rw";
        assert_eq!(mounted(line), is("/my jobs", "/mnt/a \\b\t\n"));
        assert_eq!(mounted("36 24 0:30 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu"), None);
        assert_eq!(mounted("36 24 0:30 / /mnt/cgroup2 rw cgroup2 - ext4 cgroup2 rw"), None);
        assert_eq!(["", "35 24 0:29 / /sys rw", "35 24 0:29 / /sys rw -"].map(mounted), [None, None, None]);
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// Escapes as the kernel does (`seq_path`, `mangle_path`).
        #[test]
        fn unescaping_restores_any_path(
            path in prop::collection::vec(prop_oneof![any::<u8>(), Just(b'\\'), b'0'..=b'8'], 0..20),
        ) {
            let escaped: Vec<_> = path.iter().flat_map(|byte| match byte {
                b' ' | b'\t' | b'\n' | b'\\' | b'#' => format!("\\{byte:03o}").into_bytes(),
                _ => vec![*byte],
            }).collect();
            prop_assert_eq!(unescaped(&escaped).into_os_string().into_vec(), path);
        }

        /// The creator of a cgroup may choose any name.
        #[test]
        fn any_path_is_read(
            parts in prop::collection::vec(
                prop_oneof![
                    "\\PC{0,20}", "docker-[0-9a-f]{60,66}\\.scope", "[0-9a-fé]{64}", "pod[0-9a-fé_]{30,40}", "a:b:[0-9a-f]{64}"
                ],
                0..6,
            ),
        ) {
            let path = parts.iter().map(|part| format!("/{part}")).collect::<String>();
            let origin = CgroupOrigin::from_path(&path);
            for name in [origin.container, origin.unit].into_iter().flatten() {
                prop_assert!(!name.is_empty() && name.len() <= path.len() + 32, "{name}");
            }
            super::path(&path);
        }
    }
}
