import Testing

@testable import HatoRuntime

@Suite struct CgroupTests {
    private static let version1 = """
        25 20 0:22 / /sys/fs/cgroup ro,nosuid - tmpfs tmpfs ro,mode=755
        30 25 0:27 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu
        31 25 0:28 / /sys/fs/cgroup/memory rw,nosuid shared:9 - cgroup cgroup rw,memory

        """
    private static let version2 = "30 25 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"

    private func limit(_ membership: String, _ mounts: String, _ files: [String: String]) -> Int? {
        Cgroups(membership: membership, mounts: mounts).memoryLimit { files[$0] }
    }

    @Test func limitOfVersion2IsRead() {
        let files = ["/sys/fs/cgroup/hato.slice/a/memory.max": "536870912\n"]
        #expect(limit("0::/hato.slice/a\n", Self.version2, files) == 512 << 20)
    }

    @Test func lowestLimitOfThoseAboveCounts() {
        let files = [
            "/sys/fs/cgroup/hato.slice/a/memory.max": "536870912\n",
            "/sys/fs/cgroup/hato.slice/memory.max": "1000000\n",
        ]
        #expect(limit("0::/hato.slice/a\n", Self.version2, files) == 1_000_000)
    }

    @Test func maxIsNoLimit() {
        let files = [
            "/sys/fs/cgroup/hato.slice/a/memory.max": "max\n", "/sys/fs/cgroup/hato.slice/memory.max": "1000000\n",
        ]
        #expect(limit("0::/hato.slice/a\n", Self.version2, files) == 1_000_000)
        #expect(limit("0::/hato.slice/a\n", Self.version2, ["/sys/fs/cgroup/hato.slice/a/memory.max": "max\n"]) == nil)
    }

    @Test func limitOfVersion1IsRead() {
        let files = [
            "/sys/fs/cgroup/memory/x/memory.limit_in_bytes": "9223372036854771712\n",
            "/sys/fs/cgroup/memory/x/y/memory.limit_in_bytes": "419430400\n",
            "/sys/fs/cgroup/cpu/x/y/memory.limit_in_bytes": "5\n",
        ]
        let membership = "9:name=systemd:/\n5:cpu:/x/y\n4:memory:/x/y\n0::/x\n"
        #expect(limit(membership, Self.version1, files) == 400 << 20)
    }

    @Test func hugeLimitIsNone() {
        let files = ["/sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n"]
        #expect(limit("4:memory:/\n", Self.version1, files) == nil)
    }

    /// A container without a namespace of cgroups: its view of the tree begins at its own.
    @Test func pathBelowTheMountedPartIsRelativeToIt() {
        let mounts = "31 25 0:28 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n"
        let files = ["/sys/fs/cgroup/memory/memory.limit_in_bytes": "419430400\n"]
        #expect(limit("4:memory:/docker/abc\n", mounts, files) == 400 << 20)
        #expect(limit("4:memory:/elsewhere\n", mounts, files) == 400 << 20)
    }

    @Test func pathOutsideOfTheNamespaceIsTheMountPoint() {
        let files = ["/sys/fs/cgroup/memory.max": "419430400\n", "/sys/fs/cgroup/../x/memory.max": "7\n"]
        #expect(limit("0::/../x\n", Self.version2, files) == 400 << 20)
    }

    @Test(arguments: ["", "\n", "0:\n", "::\n", "nonsense", "0::/a\n1:memory", "4:memory:/x"])
    func invalidCgroupFilesHaveNoLimit(membership: String) {
        #expect(limit(membership, "30 25\n- - - -\n31 25 0:28 / /m -\n", [:]) == nil)
        let odd = ["/sys/fs/cgroup/a/memory.max": "-5", "/sys/fs/cgroup/memory.max": "12 13"]
        #expect(limit(membership, Self.version2, odd) == nil)
    }
}
