// Counters of a run at the bottleneck, and their output. SPDX-License-Identifier: MIT OR Apache-2.0

#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <sstream>
#include <string>
#include <vector>

// The sojourn times of the packets that a link took from its queue, kept whole so that percentiles are exact.
class Delays
{
  public:
    void add(uint64_t nanoseconds)
    {
        samples.push_back(nanoseconds);
        sum += static_cast<double>(nanoseconds);
    }

    size_t count() const
    {
        return samples.size();
    }

    double meanMs() const
    {
        return samples.empty() ? 0 : sum / static_cast<double>(samples.size()) / 1e6;
    }

    // The smallest sample that at least the share `q` of all samples does not exceed (nearest rank).
    double percentileMs(double q)
    {
        if (samples.empty())
        {
            return 0;
        }
        auto rank = static_cast<size_t>(std::ceil(q * static_cast<double>(samples.size())));
        auto at = samples.begin() + static_cast<long>(std::max<size_t>(rank, 1) - 1);
        std::nth_element(samples.begin(), at, samples.end());
        return static_cast<double>(*at) / 1e6;
    }

  private:
    std::vector<uint64_t> samples;
    double sum{0};
};

// Packets at the bottleneck's queue from the end of the warm-up on.
struct QueueCounts
{
    uint64_t offered{0};                    // came to the queue
    uint64_t sent{0};                       // the link took them
    uint64_t queuedAtStart{0};              // stood in the queue when counting began
    uint64_t dropped{0};
    uint64_t marked{0};
    std::map<std::string, uint64_t> dropsByReason;
    std::map<std::string, uint64_t> marksByReason;
    Delays delays;
};

// One flat JSON object; values come in the order in which they are added.
class Json
{
  public:
    template <typename T>
    Json& number(const std::string& key, T value)
    {
        std::ostringstream text;
        text.precision(12);
        text << value;
        return raw(key, text.str());
    }

    Json& string(const std::string& key, const std::string& value)
    {
        return raw(key, "\"" + value + "\"");
    }

    Json& counts(const std::string& key, const std::map<std::string, uint64_t>& values)
    {
        Json inner;
        for (const auto& [name, value] : values)
        {
            inner.number(name, value);
        }
        return raw(key, inner.text());
    }

    template <typename T>
    Json& list(const std::string& key, const std::vector<T>& values)
    {
        std::ostringstream text;
        text.precision(12);
        for (size_t i = 0; i < values.size(); ++i)
        {
            text << (i ? ", " : "[") << values[i];
        }
        return raw(key, values.empty() ? "[]" : text.str() + "]");
    }

    std::string text() const
    {
        return "{" + body + "}";
    }

  private:
    Json& raw(const std::string& key, const std::string& value)
    {
        body += (body.empty() ? "\"" : ", \"") + key + "\": " + value;
        return *this;
    }

    std::string body;
};
