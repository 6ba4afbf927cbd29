// The KDA step and a block of MLA attention: every supported table against the scalar table, and
// the scalar table against FORMAT 1.6 and 1.7.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "kernels/bits.h"
#include "kernels/dispatch.h"
#include "kernels/math.h"

namespace sluice {

namespace {

constexpr float kGuard = 12345.0f;

struct KdaCase {
  int64_t key_dim, value_dim;
  std::vector<float> state, decay, k, v, q;
  float beta = 0.7f;

  KdaCase(int64_t keys, int64_t values, Random& random, bool awkward)
      : key_dim(keys), value_dim(values) {
    state = awkward ? random.awkward(keys * values) : random.normals(keys * values);
    state.push_back(kGuard);
    decay = random.normals(keys);
    for (float& d : decay) d = sigmoid_f32(d);
    k = awkward ? random.awkward(keys) : random.normals(keys, 0.1f);
    v = random.normals(values);
    q = random.normals(keys, 0.1f);
  }
};

struct KdaResult {
  std::vector<float> state, o;
};

KdaResult step(const KernelTable& table, const KdaCase& c, bool with_q) {
  KdaResult result{c.state, std::vector<float>(static_cast<size_t>(c.value_dim) + 1, kGuard)};
  table.kda_step(result.state.data(), {.decay = c.decay.data(),
                                       .k = c.k.data(),
                                       .v = c.v.data(),
                                       .q = with_q ? c.q.data() : nullptr,
                                       .o = with_q ? result.o.data() : nullptr,
                                       .beta = c.beta,
                                       .key_dim = c.key_dim,
                                       .value_dim = c.value_dim});
  EXPECT_EQ(result.state.back(), kGuard);
  EXPECT_EQ(result.o.back(), kGuard);
  return result;
}

TEST(KdaStep, EveryTableEqualsScalarAndReplayLeavesTheSameState) {
  Random random(30);
  for (int64_t values : {1, 5, 16, 17, 32, 48, 100, 128, 129, 200, 256}) {
    for (int64_t keys : {1, 7, 32, 128}) {
      for (const bool awkward : {false, true}) {
        const KdaCase c(keys, values, random, awkward);
        const KdaResult want = step(scalar_table(), c, /*with_q=*/true);
        EXPECT_TRUE(same_bits(step(scalar_table(), c, false).state, want.state));
        for (const KernelTable* table : supported_tables()) {
          const KdaResult got = step(*table, c, /*with_q=*/true);
          EXPECT_TRUE(same_bits(got.state, want.state))
              << table->name << " " << keys << "x" << values;
          EXPECT_TRUE(same_bits(got.o, want.o)) << table->name << " " << keys << "x" << values;
          EXPECT_TRUE(same_bits(step(*table, c, false).state, want.state)) << table->name;
        }
      }
    }
  }
}

TEST(KdaStep, IsTheFormats) {
  Random random(31);
  const KdaCase c(6, 3, random, false);
  std::vector<float> s = c.state;
  const KdaResult got = step(scalar_table(), c, /*with_q=*/true);
  for (size_t j = 0; j < 3; ++j) {
    float u = 0.0f, o = 0.0f;
    for (size_t i = 0; i < 6; ++i) s[i * 3 + j] = s[i * 3 + j] * c.decay[i];
    for (size_t i = 0; i < 6; ++i) u = std::fma(s[i * 3 + j], c.k[i], u);
    const float delta = c.beta * (c.v[j] - u);
    for (size_t i = 0; i < 6; ++i) s[i * 3 + j] = std::fma(c.k[i], delta, s[i * 3 + j]);
    for (size_t i = 0; i < 6; ++i) o = std::fma(s[i * 3 + j], c.q[i], o);
    EXPECT_TRUE(same_bits(got.o[j], o)) << j;
  }
  EXPECT_TRUE(same_bits(got.state, s));
}

struct Attended {
  float max, sum;
  std::vector<float> context;
};

// Walks `latents` in blocks of `counts` positions.
Attended attend(const KernelTable& table, const std::vector<float>& query,
                const std::vector<float>& latents, const std::vector<int64_t>& counts,
                int64_t kv_lora) {
  Attended result{-INFINITY, 0.0f, std::vector<float>(static_cast<size_t>(kv_lora) + 1, 0.0f)};
  result.context.back() = kGuard;
  const auto dim = static_cast<int64_t>(query.size());
  const float* at = latents.data();
  AttentionRun run{result.max, result.sum, result.context.data()};
  for (int64_t count : counts) {
    table.attend_block(run, query.data(), 0.072f, {at, count, kv_lora, dim});
    at += count * dim;
  }
  EXPECT_EQ(result.context.back(), kGuard);
  result.max = run.max;
  result.sum = run.sum;
  return result;
}

void expect_attended_equal(const std::vector<float>& query, const std::vector<float>& latents,
                           const std::vector<int64_t>& counts, int64_t kv_lora) {
  const Attended want = attend(scalar_table(), query, latents, counts, kv_lora);
  for (const KernelTable* table : supported_tables()) {
    const Attended got = attend(*table, query, latents, counts, kv_lora);
    EXPECT_TRUE(same_bits(got.max, want.max)) << table->name << " " << counts[0];
    EXPECT_TRUE(same_bits(got.sum, want.sum)) << table->name << " " << counts[0];
    EXPECT_TRUE(same_bits(got.context, want.context)) << table->name << " " << counts[0];
  }
}

TEST(AttendBlock, EveryTableEqualsScalarForEveryCount) {
  Random random(32);
  for (int64_t count = 1; count <= kLatentBlockMax; ++count) {
    for (const auto& [kv_lora, rope] : {std::pair<int64_t, int64_t>{16, 8}, {21, 5}, {130, 16}}) {
      const int64_t dim = kv_lora + rope;
      expect_attended_equal(random.normals(dim), random.normals(dim * (count + 7), 3.0f),
                            {count, 7}, kv_lora);
    }
  }
  expect_attended_equal(random.normals(576), random.normals(576 * 150), {64, 64, 22}, 512);
}

TEST(AttendBlock, AwkwardValuesKeepTheLaw) {
  Random random(33);
  for (int repeat = 0; repeat < 50; ++repeat) {
    expect_attended_equal(random.awkward(24), random.awkward(24 * 90), {64, 26}, 16);
    expect_attended_equal(random.tiny(24), random.tiny(24 * 90), {64, 26}, 16);
  }
  const std::vector<float> zero(24, 0.0f);
  expect_attended_equal(zero, random.normals(24 * 3), {3}, 16);  // scores of +0 and -0
}

TEST(AttendBlock, AMaximumOfZeroIsPositive) {
  // Products underflow to -0 in all lanes, so the only score is -0.
  const std::vector<float> query(32, -0x1p-100f), latent(32, 0x1p-100f);
  EXPECT_TRUE(std::signbit(scalar_table().dot(query.data(), latent.data(), 32)));
  for (const KernelTable* table : supported_tables()) {
    EXPECT_TRUE(same_bits(attend(*table, query, latent, {1}, 16).max, 0.0f)) << table->name;
  }
}

TEST(AttendBlock, IsTheFormats) {
  Random random(34);
  const std::vector<float> query = random.normals(9, 4.0f), latents = random.normals(9 * 5);
  const Attended got = attend(scalar_table(), query, latents, {3, 2}, 6);
  float m = -INFINITY, z = 0.0f;
  std::vector<float> context(6, 0.0f);
  for (const auto& [begin, end] : {std::pair<size_t, size_t>{0, 3}, {3, 5}}) {
    std::vector<float> score;
    float next = m;
    for (size_t p = begin; p < end; ++p) {
      score.push_back(scalar_table().dot(query.data(), latents.data() + 9 * p, 9) * 0.072f);
      next = std::fmax(next, score.back());
    }
    const float a = exp_f32(m - next);
    if (begin == 0) {
      EXPECT_TRUE(same_bits(a, 0.0f));
    }
    z = z * a;
    for (float& c : context) c = c * a;
    for (size_t p = begin; p < end; ++p) {
      const float e = exp_f32(score[p - begin] - next);
      z = z + e;
      for (size_t l = 0; l < 6; ++l) context[l] = std::fma(e, latents[9 * p + l], context[l]);
    }
    m = next;
  }
  EXPECT_TRUE(same_bits(got.max, m));
  EXPECT_TRUE(same_bits(got.sum, z));
  context.push_back(kGuard);
  EXPECT_TRUE(same_bits(got.context, context));
}

}  // namespace

}  // namespace sluice
