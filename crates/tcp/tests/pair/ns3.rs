//! The profile `ns3` compared with ns-3 3.37 itself.
//!
//! The table records Debian's ns-3 3.37: `BulkSendApplication` over a link of 10 ms with a queue that drops nothing,
//! segments of 1 448 bytes, an initial window of ten, buffers of 6 MiB, and otherwise defaults. An `ErrorModel` on the
//! receiving device drops or marks segments and ACKs on arrival by their number. For each run it has the number of data
//! segments sent, their sequence numbers in order (as a hash), the mean of their sending times, and the last of these
//! times.

use crate::pair::link::{Direction, Fate, Pair};
use queuescope_tcp::{Algorithm, Controller, Profile, TcpParams};
use queuescope_wire::Nanos;

struct Run {
    control: &'static str,
    /// In megabits per second.
    rate: u64,
    segments: u64,
    /// Segments that do not arrive, counted from the SYN.
    lost: &'static [u64],
    /// ACKs that do not arrive, counted from that of the SYN.
    lost_acks: &'static [u64],
    /// Segments that arrive marked; ECN is on if there are any.
    marked: &'static [u64],
    sent: u64,
    order: u64,
    /// In microseconds since the SYN.
    times: u64,
    end: u64,
}

#[test]
fn each_segment_is_sent_as_in_ns3() {
    for (number, run) in RUNS.iter().enumerate() {
        let params = TcpParams { ecn: !run.marked.is_empty(), ..TcpParams::ns3() };
        let mss = u64::from(params.mss);
        let algorithm: Algorithm = run.control.parse().unwrap();
        let control = Controller::new(&algorithm.params(Profile::Ns3), params.mss, 10 * mss, 1);
        let plan = |direction, number, _: &_, _| {
            let lost = if direction == Direction::Forth { run.lost } else { run.lost_acks };
            let marked = direction == Direction::Forth && run.marked.contains(&number);
            Fate { lost: lost.contains(&number), marked, ..Fate::default() }
        };
        let mut pair = Pair::new(&params, control, Some(run.segments * mss), plan);
        pair.byte_time = 8_000 / run.rate;
        pair.connect();
        assert!(pair.finish(Nanos(60_000_000_000)));
        let forth =
            pair.passed.iter().filter(|passed| passed.direction == Direction::Forth && passed.segment.length > 0);
        let (mut sent, mut times, mut end, mut order) = (0, 0, 0, 0xcbf2_9ce4_8422_2325_u64);
        for passed in forth {
            sent += 1;
            times += passed.at.0;
            end = passed.at.0 / 1_000;
            for byte in ((passed.segment.seq - 1) / mss).to_le_bytes() {
                order = (order ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
            }
        }
        assert_eq!((sent, order), (run.sent, run.order), "run {number}");
        // Headers of SYNs and the order within a nanosecond cause a difference of some microseconds.
        let mean = times / sent / 1_000;
        assert!(mean.abs_diff(run.times) <= 300 && end.abs_diff(run.end) <= 300, "run {number}: {mean}, {end}");
    }
}

const RUNS: &[Run] = &[
    Run {
        control: "newreno",
        rate: 10,
        segments: 400,
        lost: &[5, 9, 10, 14],
        lost_acks: &[],
        marked: &[],
        sent: 404,
        order: 0xc42981dad9fd9c55,
        times: 501693,
        end: 817808,
    },
    Run {
        control: "newreno",
        rate: 10,
        segments: 400,
        lost: &[
            100, 102, 104, 106, 108, 110, 112, 114, 116, 118, 120, 122, 124, 126, 128, 130, 132, 134, 136, 138, 140,
            142, 144, 146, 148, 150, 152, 154, 156, 158,
        ],
        lost_acks: &[],
        marked: &[],
        sent: 430,
        order: 0x40fb10704a27b46b,
        times: 275184,
        end: 534470,
    },
    Run {
        control: "cubic",
        rate: 10,
        segments: 400,
        lost: &[100, 180],
        lost_acks: &[],
        marked: &[],
        sent: 402,
        order: 0x75407a37db3277e5,
        times: 210989,
        end: 442331,
    },
    Run {
        control: "newreno",
        rate: 10,
        segments: 400,
        lost: &[100],
        lost_acks: &[20, 22, 23, 50],
        marked: &[],
        sent: 401,
        order: 0x9f97b4973d68a0f7,
        times: 257392,
        end: 499624,
    },
    Run {
        control: "newreno",
        rate: 10,
        segments: 20,
        lost: &[20, 21],
        lost_acks: &[],
        marked: &[],
        sent: 22,
        order: 0x293cc5e8a83e2704,
        times: 155186,
        end: 1492281,
    },
    Run {
        control: "cubic",
        rate: 10,
        segments: 400,
        lost: &[2, 3, 4, 5, 6, 7, 8, 9, 10, 11],
        lost_acks: &[],
        marked: &[],
        sent: 410,
        order: 0xaefe79d7c69c62f4,
        times: 1407762,
        end: 1707804,
    },
    Run {
        control: "cubic",
        rate: 100,
        segments: 2000,
        lost: &[1000, 1005],
        lost_acks: &[],
        marked: &[],
        sent: 2002,
        order: 0xf24146ca22029dc4,
        times: 183498,
        end: 306821,
    },
    Run {
        control: "cubic",
        rate: 100,
        segments: 5000,
        lost: &[
            1500, 1503, 1506, 1509, 1512, 1515, 1518, 1521, 1524, 1527, 1530, 1533, 1536, 1539, 1542, 1545, 1548, 1551,
            1554, 1557, 1560, 1563, 1566, 1569, 1572, 1575, 1578, 1581, 1584, 1587, 1590, 1593, 1596, 1599, 1602, 1605,
            1608, 1611, 1614, 1617, 1620, 1623, 1626, 1629, 1632, 1635, 1638, 1641, 1644, 1647, 1650, 1653, 1656, 1659,
            1662, 1665, 1668, 1671, 1674, 1677, 1680, 1683, 1686, 1689, 1692, 1695, 1698, 1701, 1704, 1707, 1710, 1713,
            1716, 1719, 1722, 1725, 1728, 1731, 1734, 1737, 1740, 1743, 1746, 1749, 1752, 1755, 1758, 1761, 1764, 1767,
            1770, 1773, 1776, 1779, 1782, 1785, 1788, 1791, 1794, 1797, 1800, 1803, 1806, 1809, 1812, 1815, 1818, 1821,
            1824, 1827, 1830, 1833, 1836, 1839, 1842, 1845, 1848, 1851, 1854, 1857, 1860, 1863, 1866, 1869, 1872, 1875,
            1878, 1881, 1884, 1887, 1890, 1893, 1896, 1899,
        ],
        lost_acks: &[],
        marked: &[],
        sent: 5134,
        order: 0xc6863f946ff16de3,
        times: 370295,
        end: 678836,
    },
    Run {
        control: "newreno",
        rate: 100,
        segments: 5000,
        lost: &[
            1500, 1513, 1526, 1539, 1552, 1565, 1578, 1591, 1604, 1617, 1630, 1643, 1656, 1669, 1682, 1695, 1708, 1721,
            1734, 1747, 1760, 1773, 1786, 1799, 1812, 1825, 1838, 1851, 1864, 1877, 1890, 1903, 1916, 1929, 1942, 1955,
            1968, 1981, 1994, 2007, 2020, 2033, 2046, 2059, 2072, 2085, 2098, 2111, 2124, 2137, 2150, 2163, 2176, 2189,
            2202, 2215, 2228, 2241, 2254, 2267, 2280, 2293, 2306, 2319, 2332, 2345, 2358, 2371, 2384, 2397, 2410, 2423,
            2436, 2449, 2462, 2475, 2488, 2501, 2514, 2527, 2540, 2553, 2566, 2579, 2592, 2605, 2618, 2631, 2644, 2657,
            2670, 2683, 2696, 2709, 2722, 2735, 2748, 2761, 2774, 2787, 2800, 2813, 2826, 2839, 2852, 2865, 2878, 2891,
            2904, 2917, 2930, 2943, 2956, 2969, 2982, 2995,
        ],
        lost_acks: &[],
        marked: &[],
        sent: 5388,
        order: 0xc711d3729bafbe6b,
        times: 426734,
        end: 1456835,
    },
    Run {
        control: "cubic",
        rate: 10,
        segments: 1500,
        lost: &[
            16, 73, 75, 137, 313, 315, 359, 416, 434, 439, 463, 469, 523, 536, 608, 641, 643, 691, 737, 741, 824, 828,
            836, 881, 883, 919, 922, 925, 989, 998, 1005, 1008, 1059, 1089, 1202, 1215, 1257, 1296, 1301, 1349, 1396,
            1410, 1489, 1509, 1566, 1586, 1659,
        ],
        lost_acks: &[],
        marked: &[],
        sent: 1544,
        order: 0xc3b6bcdfd8c576e2,
        times: 5288519,
        end: 12956969,
    },
    Run {
        control: "newreno",
        rate: 10,
        segments: 1500,
        lost: &[
            16, 61, 64, 101, 136, 168, 222, 302, 314, 336, 434, 441, 458, 502, 512, 554, 562, 681, 691, 694, 696, 806,
            820, 866, 886, 890, 929, 941, 948, 964, 1038, 1063, 1167, 1333, 1361, 1395, 1420, 1459, 1469, 1556, 1565,
            1593, 1677, 1696,
        ],
        lost_acks: &[],
        marked: &[],
        sent: 1539,
        order: 0xc08bdbf2119cb3f0,
        times: 5606866,
        end: 11030846,
    },
    Run {
        control: "newreno",
        rate: 10,
        segments: 1500,
        lost: &[
            22, 143, 178, 217, 255, 298, 304, 324, 387, 445, 516, 552, 658, 690, 822, 1065, 1088, 1130, 1145, 1261,
            1318, 1334, 1397, 1410, 1514, 1670,
        ],
        lost_acks: &[],
        marked: &[],
        sent: 1527,
        order: 0x5f633544597332dc,
        times: 3390030,
        end: 6741603,
    },
    Run {
        control: "newreno",
        rate: 10,
        segments: 1500,
        lost: &[
            139, 212, 349, 462, 556, 575, 602, 606, 699, 741, 770, 857, 883, 888, 937, 950, 1014, 1101, 1136, 1171,
            1185, 1194, 1236, 1296, 1308, 1321, 1337, 1351, 1356, 1485, 1492, 1517, 1523, 1585, 1612, 1627, 1680,
        ],
        lost_acks: &[],
        marked: &[],
        sent: 1533,
        order: 0x2b081cd7dd3954d0,
        times: 2552424,
        end: 7675916,
    },
    Run {
        control: "newreno",
        rate: 10,
        segments: 1500,
        lost: &[
            12, 113, 186, 187, 396, 550, 597, 628, 711, 732, 865, 917, 926, 964, 986, 1002, 1006, 1079, 1080, 1130,
            1222, 1325, 1369, 1375, 1515, 1538, 1546, 1641, 1688,
        ],
        lost_acks: &[],
        marked: &[],
        sent: 1526,
        order: 0xa5aaf622e88f77bb,
        times: 3225850,
        end: 7108265,
    },
    Run {
        control: "cubic",
        rate: 10,
        segments: 1500,
        lost: &[
            25, 28, 72, 93, 120, 134, 197, 213, 231, 336, 349, 374, 383, 388, 459, 545, 671, 717, 720, 781, 789, 826,
            830, 866, 877, 894, 930, 1011, 1077, 1188, 1198, 1203, 1207, 1238, 1373, 1383, 1386, 1411, 1472, 1548,
            1575, 1688,
        ],
        lost_acks: &[],
        marked: &[],
        sent: 1539,
        order: 0x40927ed648bd3268,
        times: 4576439,
        end: 10087217,
    },
    Run {
        control: "newreno",
        rate: 10,
        segments: 1500,
        lost: &[74, 419, 554, 698, 721, 860, 1012, 1017, 1529, 1613, 1653, 1659, 1692],
        lost_acks: &[],
        marked: &[
            79, 132, 137, 168, 190, 215, 287, 374, 499, 567, 676, 734, 760, 768, 780, 852, 876, 955, 1002, 1056, 1065,
            1067, 1176, 1197, 1268, 1374, 1378, 1388, 1396, 1433, 1565, 1591, 1611,
        ],
        sent: 1508,
        order: 0x6df6552ff32d0258,
        times: 3597206,
        end: 8043508,
    },
    Run {
        control: "newreno",
        rate: 10,
        segments: 1500,
        lost: &[
            131, 160, 285, 436, 444, 477, 545, 750, 840, 867, 887, 892, 911, 1059, 1072, 1079, 1248, 1314, 1531, 1535,
            1637,
        ],
        lost_acks: &[],
        marked: &[
            31, 112, 136, 138, 281, 302, 309, 380, 406, 439, 493, 530, 610, 649, 696, 894, 968, 1038, 1046, 1145, 1180,
            1186, 1197, 1403, 1420, 1441,
        ],
        sent: 1518,
        order: 0x1995eb4e97e614fe,
        times: 4096830,
        end: 8727652,
    },
    Run {
        control: "cubic",
        rate: 10,
        segments: 1500,
        lost: &[29, 64, 482, 525, 531, 817, 839, 1104, 1287, 1297, 1478, 1486, 1536],
        lost_acks: &[],
        marked: &[
            17, 56, 187, 284, 287, 345, 379, 461, 495, 571, 609, 624, 663, 805, 810, 902, 976, 1002, 1060, 1082, 1204,
            1219, 1223, 1252, 1432, 1462, 1485, 1542, 1580, 1655,
        ],
        sent: 1512,
        order: 0xff0672c2e9384776,
        times: 4830464,
        end: 12419369,
    },
];
