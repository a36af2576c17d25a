package main

import (
	"fmt"
	"math"
	"reflect"
	"strconv"
	"time"
)

// checkLimits says which number of a configuration is none that its flag takes.
func checkLimits(config any) error {
	for _, f := range fields(config) {
		if err := f.check(f.value); err != nil {
			return err
		}
	}
	return nil
}

// check compares a number, or each of a list, with the flag's limits.
func (f *field) check(v reflect.Value) error {
	var x float64
	switch {
	case v.Kind() == reflect.Slice:
		for i := range v.Len() {
			if err := f.check(v.Index(i)); err != nil {
				return err
			}
		}
		return nil
	case v.CanInt():
		x = float64(v.Int())
	case v.CanFloat():
		x = v.Float()
	default:
		return nil
	}
	low, high := limit(f.min, 0), limit(f.max, math.Inf(1))
	if x >= low && x <= high {
		return nil
	}
	wanted := fmt.Sprintf("%g or more", low)
	if f.max != "" {
		wanted = fmt.Sprintf("%g to %g", low, high)
	}
	if d, ok := v.Interface().(time.Duration); ok {
		return fmt.Errorf("flag --%s: %s, want %s", f.name, d, wanted)
	}
	return fmt.Errorf("flag --%s: %v, want %s", f.name, v.Interface(), wanted)
}

// limit is a tag's number.
func limit(tag string, otherwise float64) float64 {
	if tag == "" {
		return otherwise
	}
	x, err := strconv.ParseFloat(tag, 64)
	if err != nil {
		panic(fmt.Sprintf("flag with the limit %q", tag)) // a fault of this program
	}
	return x
}
