package train

import (
	"encoding/json"
	"math"
	"os"
	"testing"

	"github.com/memopd/memopd-bench/torch"
)

// reference is testdata/objectives.json, made by scripts/peers/objectives.py.
type reference struct {
	Torch  string
	Policy []policyCase
	Value  []valueCase
}

type policyCase struct {
	Temperature, Clip     float64
	Vocabulary            int
	Logits                []float64
	TeacherLogits         []float64 `json:"teacher_logits"`
	IDs                   []int64
	Advantages, Behaviour []float64
	LogProbs              []float64 `json:"log_probs"`
	Entropy               []float64
	ReverseKL             []float64 `json:"reverse_kl"`
	Surrogate             float64
	ApproxKL              float64   `json:"approx_kl"`
	SurrogateGradient     []float64 `json:"surrogate_gradient"`
	EntropyGradient       []float64 `json:"entropy_gradient"`
	ReverseKLGradient     []float64 `json:"reverse_kl_gradient"`
	TopK                  int       `json:"top_k"`
	TopKKL                []float64 `json:"top_k_kl"`
	TopKKLGradient        []float64 `json:"top_k_kl_gradient"`
	SampledKL             []float64 `json:"sampled_kl"`
	SampledKLGradient     []float64 `json:"sampled_kl_gradient"`
}

type valueCase struct {
	Clip                           float64
	Values, Old, Returns, Gradient []float64
	Loss                           float64
	Clipped                        int
}

func readReference(t *testing.T) reference {
	t.Helper()
	data, err := os.ReadFile("testdata/objectives.json")
	if err != nil {
		t.Fatal(err)
	}
	var r reference
	if err := json.Unmarshal(data, &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Policy) == 0 || len(r.Value) == 0 {
		t.Fatal("testdata/objectives.json holds no cases")
	}
	return r
}

// double makes a float64 tensor, so that only our formulas are under test.
func double(data []float64, shape ...int64) *torch.Tensor { return torch.FromFloat64(data, shape...) }

func near(t *testing.T, what string, got, want []float64, tolerance float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d values, want %d", what, len(got), len(want))
	}
	for i := range got {
		if !(math.Abs(got[i]-want[i]) <= tolerance*(1+math.Abs(want[i]))) {
			t.Errorf("%s[%d] = %.12g, want %.12g", what, i, got[i], want[i])
		}
	}
}

func TestPolicyObjectivesEqualPyTorch(t *testing.T) {
	for _, c := range readReference(t).Policy {
		s := torch.NewScope()
		n, v := int64(len(c.IDs)), int64(c.Vocabulary)
		logits := double(c.Logits, n, v).RequiresGrad_(true)
		student := LogDistribution(logits, c.Temperature)
		teacher := LogDistribution(double(c.TeacherLogits, n, v), c.Temperature)
		logProbs := LogProbs(student, torch.FromInt64(c.IDs, n))
		near(t, "log-probs", logProbs.Float64s(), c.LogProbs, 1e-12)
		near(t, "entropy", Entropy(student).Float64s(), c.Entropy, 1e-12)
		near(t, "reverse KL", ReverseKL(student, teacher).Float64s(), c.ReverseKL, 1e-12)

		gradient := func(f func() *torch.Tensor) []float64 {
			logits.ZeroGrad()
			f().Backward()
			return logits.Grad().Float64s()
		}
		again := func() *torch.Tensor { return LogDistribution(logits, c.Temperature) }
		near(t, "entropy gradient", gradient(func() *torch.Tensor { return Entropy(again()).Sum() }), c.EntropyGradient, 1e-10)
		near(t, "reverse KL gradient", gradient(func() *torch.Tensor { return ReverseKL(again(), teacher).Sum() }), c.ReverseKLGradient, 1e-10)
		var surrogate Surrogate
		near(t, "surrogate gradient", gradient(func() *torch.Tensor {
			surrogate = ClippedSurrogate(LogProbs(again(), torch.FromInt64(c.IDs, n)), double(c.Behaviour), double(c.Advantages), c.Clip)
			return surrogate.Loss
		}), c.SurrogateGradient, 1e-10)
		near(t, "surrogate", []float64{surrogate.Loss.Item(), surrogate.KLSum}, []float64{c.Surrogate, c.ApproxKL}, 1e-12)
		writtenOutGradients(t, c)
		s.Close()
	}
}

// writtenOutGradients compares the gradients of distribution.go, which come about
// without autograd, with PyTorch's.
func writtenOutGradients(t *testing.T, c policyCase) {
	t.Helper()
	n, v := int64(len(c.IDs)), int64(c.Vocabulary)
	dist := func(logits []float64) *torch.Tensor { return logSoftmax_(double(logits, n, v), c.Temperature) }
	ids := torch.FromInt64(c.IDs, n)
	near(t, "log-probs in place", picked(dist(c.Logits), ids).Float64s(), c.LogProbs, 1e-12)

	student := dist(c.Logits)
	entropy, kl := terms{IDs: ids, EntropyWeight: 1}.gradient(student, c.Temperature)
	near(t, "summed entropy", []float64{entropy, kl}, []float64{sumOf(c.Entropy), 0}, 1e-12)
	near(t, "written-out entropy gradient", student.Float64s(), c.EntropyGradient, 1e-10)

	student = dist(c.Logits)
	every := make([]int64, n)
	for i := range every {
		every[i] = int64(i)
	}
	entropy, kl = terms{IDs: ids, KLWeight: 1, Teacher: dist(c.TeacherLogits), TeacherRows: every}.gradient(student, c.Temperature)
	near(t, "summed KL", []float64{entropy, kl}, []float64{sumOf(c.Entropy), sumOf(c.ReverseKL)}, 1e-12)
	near(t, "written-out reverse KL gradient", student.Float64s(), c.ReverseKLGradient, 1e-10)

	kl, gradient := topKOf(c.Logits, c.TeacherLogits, len(c.IDs), c.Vocabulary, c.TopK, c.Temperature)
	near(t, "summed KL of the top ids", []float64{kl}, []float64{sumOf(c.TopKKL)}, 1e-12)
	near(t, "gradient of the KL of the top ids", gradient, c.TopKKLGradient, 1e-10)

	student = dist(c.Logits)
	sampled := picked(student, ids).RequiresGrad_(true)
	loss := SampledReverseKL(sampled, double(c.Behaviour), picked(dist(c.TeacherLogits), ids))
	loss.Backward()
	near(t, "KL by sampled ids", []float64{loss.Item()}, []float64{sumOf(c.SampledKL)}, 1e-12)
	terms{IDs: ids, Picked: sampled.Grad()}.gradient(student, c.Temperature)
	near(t, "gradient of the KL by sampled ids", student.Float64s(), c.SampledKLGradient, 1e-10)

	student = dist(c.Logits)
	logProbs := picked(student, ids).RequiresGrad_(true)
	ClippedSurrogate(logProbs, double(c.Behaviour), double(c.Advantages), c.Clip).Loss.Backward()
	terms{IDs: ids, Picked: logProbs.Grad()}.gradient(student, c.Temperature)
	near(t, "written-out surrogate gradient", student.Float64s(), c.SurrogateGradient, 1e-10)
}

func sumOf(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += v
	}
	return sum
}

func TestValueLossEqualsPyTorch(t *testing.T) {
	for _, c := range readReference(t).Value {
		s := torch.NewScope()
		values := double(c.Values).RequiresGrad_(true)
		l := ClippedValueLoss(values, double(c.Old), double(c.Returns), c.Clip)
		l.Loss.Backward()
		near(t, "value loss", []float64{l.Loss.Item(), l.ClippedCount}, []float64{c.Loss, float64(c.Clipped)}, 1e-12)
		near(t, "value gradient", values.Grad().Float64s(), c.Gradient, 1e-12)
		s.Close()
	}
}

// Three actions by hand: ratio 1.5 with advantage 1 is clipped to 1.2, ratio 0.5
// with advantage -1 to -0.8, ratio 1.5 with advantage -1 is not clipped.
func TestClippedSurrogateByHand(t *testing.T) {
	s := torch.NewScope()
	defer s.Close()
	logProbs := double([]float64{math.Log(1.5), math.Log(0.5), math.Log(1.5)}).RequiresGrad_(true)
	got := ClippedSurrogate(logProbs, double([]float64{0, 0, 0}), double([]float64{1, -1, -1}), 0.2)
	near(t, "loss", []float64{got.Loss.Item()}, []float64{-(1.2 - 0.8 - 1.5)}, 1e-12)
	if got.ClippedCount != 2 {
		t.Errorf("%g actions clipped, want 2", got.ClippedCount)
	}
	got.Loss.Backward()
	near(t, "gradient", logProbs.Grad().Float64s(), []float64{0, 0, 1.5}, 1e-12)
	near(t, "ratios", []float64{got.RatioMin, got.RatioMax}, []float64{0.5, 1.5}, 1e-12)
}

// The ratio of a policy that has not moved is 1, so that the gradient of the loss
// is -A for each action whatever the clip.
func TestSurrogateBeforeFirstUpdate(t *testing.T) {
	s := torch.NewScope()
	defer s.Close()
	logProbs := double([]float64{-1, -2, -0.5}).RequiresGrad_(true)
	got := ClippedSurrogate(logProbs, logProbs.Detach(), double([]float64{2, -3, 0}), 0.2)
	got.Loss.Backward()
	near(t, "gradient", logProbs.Grad().Float64s(), []float64{-2, 3, 0}, 1e-12)
	if got.ClippedCount != 0 || got.KLSum != 0 {
		t.Errorf("clipped %g, KL %g, want 0 and 0", got.ClippedCount, got.KLSum)
	}
}

// KL of (1/2, 1/2) to (1/4, 3/4) is log 2 - log(3)/2; the other direction is
// another number, so that exchanged arguments are found out.
func TestReverseKLByHand(t *testing.T) {
	s := torch.NewScope()
	defer s.Close()
	student := LogDistribution(double([]float64{0, 0}, 1, 2), 1)
	teacher := LogDistribution(double([]float64{0, math.Log(3)}, 1, 2), 1)
	near(t, "KL", ReverseKL(student, teacher).Float64s(), []float64{math.Log(2) - 0.5*math.Log(3)}, 1e-12)
}

// Half-precision logits are promoted before the softmax, so that a KL of equal
// distributions is 0 and none is negative by rounding.
func TestLogDistributionPromotes(t *testing.T) {
	s := torch.NewScope()
	defer s.Close()
	logits := torch.FromFloat32([]float32{1, 2, 3, 4}, 1, 4).To(torch.BFloat16)
	if d := LogDistribution(logits, 0.7).DType(); d != torch.Float32 {
		t.Errorf("log distribution of bfloat16 logits has type %v, want float32", d)
	}
}

// Central differences of the whole actor loss agree with its gradient.
func TestActorLossFiniteDifferences(t *testing.T) {
	c := readReference(t).Policy[0]
	n, v := int64(len(c.IDs)), int64(c.Vocabulary)
	loss := func(logits *torch.Tensor) *torch.Tensor {
		student := LogDistribution(logits, 1.3)
		teacher := LogDistribution(double(c.TeacherLogits, n, v), 1.3)
		l := ClippedSurrogate(LogProbs(student, torch.FromInt64(c.IDs, n)), double(c.Behaviour), double(c.Advantages), 0.2).Loss
		return l.Add(ReverseKL(student, teacher).Sum().MulScalar(2)).Sub(Entropy(student).Sum().MulScalar(0.01))
	}
	s := torch.NewScope()
	defer s.Close()
	logits := double(c.Logits, n, v).RequiresGrad_(true)
	loss(logits).Backward()
	gradient := logits.Grad().Float64s()
	const h = 1e-6
	for i := 0; i < len(c.Logits); i += 5 {
		at := func(d float64) float64 {
			x := append([]float64(nil), c.Logits...)
			x[i] += d
			return loss(double(x, n, v)).Item()
		}
		near(t, "gradient", []float64{gradient[i]}, []float64{(at(h) - at(-h)) / (2 * h)}, 1e-6)
	}
}

func TestCosineSchedule(t *testing.T) {
	for _, c := range []struct {
		step int
		want float64
	}{
		{0, 0.1}, {4, 0.5 * (0.1 + 0.9*0.5*(1+math.Cos(math.Pi*4/20)))}, {10, 0.55}, {20, 0.1}, {25, 0.1},
	} {
		near(t, "schedule", []float64{CosineSchedule(c.step, 20, 10, 0.1)}, []float64{c.want}, 1e-12)
	}
}
