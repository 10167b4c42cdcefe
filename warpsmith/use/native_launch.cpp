// Launch plans of versions, replayed without Python.
// Compiled on the user's machine against the installed PyTorch; warpsmith/use/native_launch.py builds and loads it.
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <ATen/PythonTorchFunctionTLS.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_strided_ops.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/GradMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <cstring>
#include <string>
#include <unordered_map>
#include <vector>

#include "native_recorder.hpp"

// PyTorch's own headers of these two need pybind11, which takes ten times as long to compile.
#ifdef WARPSMITH_WRAP_BY_VALUE
PyObject* THPVariable_Wrap(at::TensorBase tensor);
#else
PyObject* THPVariable_Wrap(const at::TensorBase& tensor);
#endif

namespace {

struct TensorObject {
  PyObject_HEAD
#ifdef WARPSMITH_MAYBE_OWNED
  c10::MaybeOwned<at::Tensor> tensor;
#else
  at::Tensor tensor;
#endif
};

const at::Tensor& tensor_of(PyObject* object) {
#ifdef WARPSMITH_MAYBE_OWNED
  return *reinterpret_cast<TensorObject*>(object)->tensor;
#else
  return reinterpret_cast<TensorObject*>(object)->tensor;
#endif
}

constexpr int kArgument = 0;  // kinds of sources; the other is an allocation of the plan

struct Patch {
  size_t at;
  int source, index;
  int64_t offset;
};
struct Launch {
  void* function;
  Config config{};
  std::vector<Attribute> attributes;
  std::string parameters;
  std::vector<size_t> offsets;
  std::vector<Patch> patches;
};
struct Allocation {
  std::vector<int64_t> sizes, strides;
  at::ScalarType type;
};
struct Output {
  int allocation;
  bool whole;
  std::vector<int64_t> sizes, strides;
  int64_t offset;
  at::ScalarType type;
};
struct View {  // warpsmith.hpp's Tensor
  void* address;
  const int64_t* shape;
  const int64_t* strides;
  int32_t axes, type;
};
struct Entry {  // a library's `run`: tensors by reference, numbers by value, outputs behind inputs
  void* address = nullptr;
  std::vector<int> types;  // of a tensor its code in warpsmith.hpp, else -1
};
struct Plan {
  std::vector<Allocation> allocations;
  std::vector<Output> outputs;
  std::vector<Launch> launches;
  Entry entry;
  bool single;
};

constexpr size_t kWords = 192;

struct Caller {
  PyObject_HEAD
  PyObject *tensor_type, *parameter_type, *stream_of, *acquire, *release;
  int device_type;
  uintptr_t mask;  // bits of an address that must be zero
  std::unordered_map<std::string, Plan>* plans;
};

constexpr c10::DispatchKeySet kWrapped({
  c10::DispatchKey::Python, c10::DispatchKey::PythonTLSSnapshot, c10::DispatchKey::FuncTorchGradWrapper,
  c10::DispatchKey::FuncTorchBatched, c10::DispatchKey::Functionalize, c10::DispatchKey::Conjugate,
  c10::DispatchKey::Negative, c10::DispatchKey::ZeroTensor,
});

// Write what a call's plan depends on; false for a call that must go through PyTorch's dispatcher.
bool write_key(Caller* self, PyObject* values, bool below_autograd, std::string& key) {
  if (!c10::impl::tls_local_dispatch_key_set().included_.operator-(c10::default_included_set).empty() ||
      at::impl::torch_function_mode_enabled())
    return false;
  int64_t words[kWords];
  size_t n = 0;
  const Py_ssize_t count = PyTuple_GET_SIZE(values);
  const bool records = !below_autograd && c10::GradMode::is_enabled();
  int device = -1;
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* value = PyTuple_GET_ITEM(values, i);
    PyTypeObject* type = Py_TYPE(value);
    if (type == (PyTypeObject*)self->tensor_type || type == (PyTypeObject*)self->parameter_type) {
      const at::Tensor& tensor = tensor_of(value);
      if (!tensor.defined() || tensor.layout() != c10::kStrided || tensor.key_set().has_any(kWrapped)) return false;
      const c10::Device place = tensor.device();
      if (static_cast<int>(place.type()) != self->device_type) return false;
      const int index = place.index() < 0 ? 0 : place.index();
      if (device >= 0 && index != device) return false;
      device = index;
      if (records && tensor.requires_grad()) return false;
      if (tensor.numel() && reinterpret_cast<uintptr_t>(tensor.const_data_ptr()) & self->mask) return false;
      const size_t axes = tensor.dim();
      if (n + 2 * axes + 2 > kWords) return false;
      words[n++] = static_cast<int64_t>(axes) << 32 | (int64_t)(uint8_t)device << 16 | (int)tensor.scalar_type();
      std::memcpy(words + n, tensor.sizes().data(), axes * sizeof(int64_t));
      std::memcpy(words + n + axes, tensor.strides().data(), axes * sizeof(int64_t));
      n += 2 * axes;
    } else {
      if (n + 2 > kWords) return false;
      if (type == &PyFloat_Type) {
        const double number = PyFloat_AS_DOUBLE(value);
        words[n++] = -1;
        std::memcpy(words + n++, &number, sizeof number);
      } else if (type == &PyLong_Type) {
        int overflow = 0;
        words[n++] = -2;
        words[n++] = PyLong_AsLongLongAndOverflow(value, &overflow);
        if (overflow) return false;
      } else if (type == &PyBool_Type) {
        words[n++] = -3;
        words[n++] = value == Py_True;
      } else {
        return false;
      }
    }
  }
  key.assign(reinterpret_cast<const char*>(words), n * sizeof(int64_t));
  return device >= 0;
}

#if defined(__x86_64__) || defined(__aarch64__)
// Integers and floating-point numbers travel in registers of their own, and integers beyond those in order on the
// stack, so one prototype fits every `run` with at most 24 integers and 8 doubles.
constexpr size_t kIntegers = 24, kDoubles = 8;
#define I8(v) v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7]
void enter(void* address, const int64_t* i, const double* d) {
  using L = int64_t;
  using D = double;
  using Run = void (*)(L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, D, D, D, D, D, D, D, D);
  reinterpret_cast<Run>(address)(I8(i), I8((i + 8)), I8((i + 16)), I8(d));
}
#else
constexpr size_t kIntegers = 0, kDoubles = 0;
void enter(void*, const int64_t*, const double*) {}
#endif

// Call the library's `run`; a Python lock is held meanwhile, because a version may keep a workspace.
bool enter_library(Caller* self, const Plan& plan, PyObject* values, const std::vector<at::Tensor>& allocations) {
  int64_t integers[kIntegers + 1] = {};
  double doubles[kDoubles + 1] = {};
  View views[kIntegers + 1];
  size_t i = 0, d = 0, v = 0;
  const size_t inputs = PyTuple_GET_SIZE(values);
  for (size_t k = 0; k < plan.entry.types.size(); ++k) {
    const int type = plan.entry.types[k];
    if (type >= 0) {
      const at::Tensor& tensor = k < inputs ? tensor_of(PyTuple_GET_ITEM(values, k)) : allocations[k - inputs];
      views[v] = {const_cast<void*>(tensor.const_data_ptr()), tensor.sizes().data(), tensor.strides().data(),
                  static_cast<int32_t>(tensor.dim()), type};
      integers[i++] = reinterpret_cast<int64_t>(&views[v++]);
    } else {
      PyObject* value = PyTuple_GET_ITEM(values, k);
      if (type == -1) doubles[d++] = PyFloat_AsDouble(value);
      else integers[i++] = type == -2 ? PyLong_AsLongLong(value) : PyObject_IsTrue(value);
    }
  }
  if (PyErr_Occurred()) return false;
  PyObject* locked = PyObject_CallNoArgs(self->acquire);
  if (locked == nullptr) return false;
  Py_DECREF(locked);
  Py_BEGIN_ALLOW_THREADS;
  enter(plan.entry.address, integers, doubles);
  Py_END_ALLOW_THREADS;
  PyObject* released = PyObject_CallNoArgs(self->release);
  Py_XDECREF(released);
  return released != nullptr;
}

void launch_all(const Plan& plan, const uintptr_t* arguments, const uintptr_t* memory, void* stream, int& error) {
  std::vector<char> buffer;
  std::vector<void*> pointers;
  for (const Launch& launch : plan.launches) {
    buffer.assign(launch.parameters.begin(), launch.parameters.end());
    for (const Patch& patch : launch.patches) {
      const uintptr_t address = (patch.source == kArgument ? arguments : memory)[patch.index] + patch.offset;
      std::memcpy(buffer.data() + patch.at, &address, sizeof address);
    }
    pointers.clear();
    for (const size_t offset : launch.offsets) pointers.push_back(buffer.data() + offset);
    Config config = launch.config;
    config.stream = stream;
    config.attributes = const_cast<Attribute*>(launch.attributes.data());
    config.count = static_cast<unsigned>(launch.attributes.size());
    error = driver.launch(&config, launch.function, pointers.data(), nullptr);
    if (error != 0) return;
  }
}

at::Tensor output_view(const at::Tensor& whole, const Output& output) {
  c10::Storage storage = whole.storage();
  const auto type = c10::scalarTypeToTypeMeta(output.type);
  at::Tensor view = at::detail::make_tensor<c10::TensorImpl>(std::move(storage), whole.key_set(), type);
  view.unsafeGetTensorImpl()->set_sizes_and_strides(output.sizes, output.strides, output.offset);
  return view;
}

// Allocate, let `fill` write to the new memory if there is one, launch, and return the outputs.
PyObject* execute(Caller* self, const Plan& plan, PyObject* values, PyObject* fill) {
  const size_t count = PyTuple_GET_SIZE(values);
  uintptr_t arguments[kWords] = {}, memory[kWords] = {};
  c10::Device device(c10::kCPU);
  for (size_t i = 0; i < count; ++i) {
    PyObject* value = PyTuple_GET_ITEM(values, i);
    PyTypeObject* type = Py_TYPE(value);
    if (type != (PyTypeObject*)self->tensor_type && type != (PyTypeObject*)self->parameter_type) continue;
    const at::Tensor& tensor = tensor_of(value);
    arguments[i] = reinterpret_cast<uintptr_t>(tensor.const_data_ptr());
    device = tensor.device();
  }
  c10::OptionalDeviceGuard guard;
  if (!device.is_cpu()) guard.reset_device(device);
  std::vector<at::Tensor> allocations;
  allocations.reserve(plan.allocations.size());
  for (const Allocation& one : plan.allocations) {
    allocations.push_back(at::_ops::empty_strided::call(
      c10::fromIntArrayRefSlow(one.sizes), c10::fromIntArrayRefSlow(one.strides), one.type, c10::kStrided, device,
      std::nullopt
    ));
    const at::Tensor& tensor = allocations.back();
    memory[allocations.size() - 1] = reinterpret_cast<uintptr_t>(tensor.const_data_ptr());
    if (tensor.numel() && (memory[allocations.size() - 1] & self->mask) != 0) {
      PyErr_SetString(PyExc_RuntimeError, "PyTorch allocates at an address that the version was not judged at");
      return nullptr;
    }
    if (fill != Py_None) {
      PyObject* object = THPVariable_Wrap(tensor);
      PyObject* done = object ? PyObject_CallOneArg(fill, object) : nullptr;
      Py_XDECREF(object);
      if (done == nullptr) return nullptr;
      Py_DECREF(done);
    }
  }
  if (plan.entry.address != nullptr) {
    if (!enter_library(self, plan, values, allocations)) return nullptr;
  } else {
    PyObject* index = PyLong_FromLong(device.index() < 0 ? 0 : device.index());
    PyObject* handle = index ? PyObject_CallOneArg(self->stream_of, index) : nullptr;
    Py_XDECREF(index);
    if (handle == nullptr) return nullptr;
    void* stream = PyLong_AsVoidPtr(handle);
    Py_DECREF(handle);
    if (PyErr_Occurred()) return nullptr;
    int error = 0;
    Py_BEGIN_ALLOW_THREADS;
    launch_all(plan, arguments, memory, stream, error);
    Py_END_ALLOW_THREADS;
    if (error != 0) return PyErr_Format(PyExc_RuntimeError, "the CUDA driver rejects a launch: error %d", error);
  }
  PyObject* results = plan.single ? nullptr : PyTuple_New(plan.outputs.size());
  for (size_t i = 0; i < plan.outputs.size(); ++i) {
    const Output& output = plan.outputs[i];
    const at::Tensor& whole = allocations[output.allocation];
    PyObject* object = output.whole ? THPVariable_Wrap(whole) : THPVariable_Wrap(output_view(whole, output));
    if (plan.single || object == nullptr) {
      Py_XDECREF(results);
      return object;
    }
    PyTuple_SET_ITEM(results, i, object);
  }
  return results;
}

PyObject* guarded_execute(Caller* self, const Plan& plan, PyObject* values, PyObject* fill) {
  try {
    return execute(self, plan, values, fill);
  } catch (const c10::OutOfMemoryError& error) {
    PyObject* torch = PyImport_ImportModule("torch");
    PyObject* type = torch ? PyObject_GetAttrString(torch, "OutOfMemoryError") : nullptr;
    if (type != nullptr) PyErr_SetString(type, error.what_without_backtrace());
    Py_XDECREF(type);
    Py_XDECREF(torch);
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
  return nullptr;
}

// call(values, below_autograd): the results, or None if no plan is for them.
PyObject* caller_call(Caller* self, PyObject* const* arguments, Py_ssize_t count) {
  if (count != 2 || !PyTuple_CheckExact(arguments[0])) {
    PyErr_SetString(PyExc_TypeError, "call takes a tuple and a bool");
    return nullptr;
  }
  thread_local std::string key;
  if (!write_key(self, arguments[0], arguments[1] == Py_True, key)) Py_RETURN_NONE;
  const auto found = self->plans->find(key);
  if (found == self->plans->end()) Py_RETURN_NONE;
  return guarded_execute(self, found->second, arguments[0], Py_None);
}

// key(values, below_autograd): what a plan depends on, as bytes; None for a call that no plan may serve.
PyObject* caller_key(Caller* self, PyObject* const* arguments, Py_ssize_t count) {
  std::string key;
  if (count != 2 || !write_key(self, arguments[0], arguments[1] == Py_True, key)) Py_RETURN_NONE;
  return PyBytes_FromStringAndSize(key.data(), key.size());
}

std::vector<int64_t> integers_of(PyObject* sequence) {
  std::vector<int64_t> numbers;
  const Py_ssize_t count = PySequence_Size(sequence);
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* item = PySequence_GetItem(sequence, i);
    numbers.push_back(item ? PyLong_AsLongLong(item) : 0);
    Py_XDECREF(item);
  }
  return numbers;
}

bool read_plan(PyObject* allocations, PyObject* outputs, PyObject* launches, PyObject* entry, Plan& plan) {
  for (Py_ssize_t i = 0; i < PyList_Size(allocations); ++i) {
    PyObject *sizes, *strides;
    int type;
    if (!PyArg_ParseTuple(PyList_GET_ITEM(allocations, i), "OOi", &sizes, &strides, &type)) return false;
    plan.allocations.push_back({integers_of(sizes), integers_of(strides), static_cast<at::ScalarType>(type)});
  }
  for (Py_ssize_t i = 0; i < PyList_Size(outputs); ++i) {
    PyObject *sizes, *strides;
    int allocation, whole, type;
    long long offset;
    if (!PyArg_ParseTuple(
          PyList_GET_ITEM(outputs, i), "ipOOLi", &allocation, &whole, &sizes, &strides, &offset, &type
        ))
      return false;
    plan.outputs.push_back({allocation, whole != 0, integers_of(sizes), integers_of(strides), offset,
                            static_cast<at::ScalarType>(type)});
  }
  for (Py_ssize_t i = 0; i < PyList_Size(launches); ++i) {
    unsigned long long function;
    unsigned g[3], b[3], shared;
    const char *attributes, *parameters;
    Py_ssize_t attribute_bytes, parameter_bytes;
    PyObject *offsets, *patches;
    if (!PyArg_ParseTuple(
          PyList_GET_ITEM(launches, i), "K(IIIIII)Iy#y#OO", &function, g, g + 1, g + 2, b, b + 1, b + 2, &shared,
          &attributes, &attribute_bytes, &parameters, &parameter_bytes, &offsets, &patches
        ))
      return false;
    Launch launch;
    launch.function = reinterpret_cast<void*>(function);
    std::memcpy(launch.config.grid, g, sizeof g);
    std::memcpy(launch.config.block, b, sizeof b);
    launch.config.shared = shared;
    launch.attributes.resize(attribute_bytes / sizeof(Attribute));
    std::memcpy(launch.attributes.data(), attributes, attribute_bytes);
    launch.parameters.assign(parameters, parameter_bytes);
    for (const int64_t offset : integers_of(offsets)) launch.offsets.push_back(offset);
    for (Py_ssize_t k = 0; k < PyList_Size(patches); ++k) {
      Patch patch;
      unsigned long long at;
      long long offset;
      if (!PyArg_ParseTuple(PyList_GET_ITEM(patches, k), "KiiL", &at, &patch.source, &patch.index, &offset))
        return false;
      patch.at = at, patch.offset = offset;
      launch.patches.push_back(patch);
    }
    plan.launches.push_back(std::move(launch));
  }
  if (entry != Py_None) {
    unsigned long long address;
    PyObject* types;
    if (!PyArg_ParseTuple(entry, "KO", &address, &types)) return false;
    plan.entry.address = reinterpret_cast<void*>(address);
    size_t integers = 0, doubles = 0;
    for (const int64_t type : integers_of(types)) {
      plan.entry.types.push_back(static_cast<int>(type));
      ++(type == -1 ? doubles : integers);
    }
    if (integers > kIntegers || doubles > kDoubles) {
      PyErr_SetString(PyExc_ValueError, "run has more parameters than a plan can pass");
      return false;
    }
  }
  if (plan.allocations.size() > kWords || PyErr_Occurred()) return false;
  return true;
}

// add(key, allocations, outputs, launches, entry, single): keep a plan for the calls with this key.
PyObject* caller_add(Caller* self, PyObject* arguments) {
  const char* key;
  Py_ssize_t length;
  int single;
  PyObject *allocations, *outputs, *launches, *entry;
  if (!PyArg_ParseTuple(
        arguments, "y#OOOOp", &key, &length, &allocations, &outputs, &launches, &entry, &single
      ))
    return nullptr;
  Plan plan;
  if (!read_plan(allocations, outputs, launches, entry, plan)) return nullptr;
  plan.single = single != 0;
  (*self->plans)[std::string(key, length)] = std::move(plan);
  Py_RETURN_NONE;
}

// replay(key, values, fill): the results of the plan of `key`, with new memory filled before.
PyObject* caller_replay(Caller* self, PyObject* arguments) {
  const char* key;
  Py_ssize_t length;
  PyObject *values, *fill;
  if (!PyArg_ParseTuple(arguments, "y#O!O", &key, &length, &PyTuple_Type, &values, &fill)) return nullptr;
  const auto found = self->plans->find(std::string(key, length));
  if (found == self->plans->end()) Py_RETURN_NONE;
  return guarded_execute(self, found->second, values, fill);
}

PyObject* caller_remove(Caller* self, PyObject* key) {
  char* text;
  Py_ssize_t length;
  if (PyBytes_AsStringAndSize(key, &text, &length) != 0) return nullptr;
  self->plans->erase(std::string(text, length));
  Py_RETURN_NONE;
}

PyObject* caller_new(PyTypeObject* type, PyObject* arguments, PyObject*) {
  PyObject *tensor, *parameter, *stream_of, *acquire, *release;
  int device_type;
  unsigned long long mask;
  if (!PyArg_ParseTuple(
        arguments, "OOiKOOO", &tensor, &parameter, &device_type, &mask, &stream_of, &acquire, &release
      ))
    return nullptr;
  Caller* self = reinterpret_cast<Caller*>(type->tp_alloc(type, 0));
  if (self == nullptr) return nullptr;
  self->tensor_type = Py_NewRef(tensor), self->parameter_type = Py_NewRef(parameter);
  self->stream_of = Py_NewRef(stream_of), self->acquire = Py_NewRef(acquire), self->release = Py_NewRef(release);
  self->device_type = device_type, self->mask = mask;
  self->plans = new std::unordered_map<std::string, Plan>;
  return reinterpret_cast<PyObject*>(self);
}

void caller_free(Caller* self) {
  for (PyObject* object : {self->tensor_type, self->parameter_type, self->stream_of, self->acquire, self->release})
    Py_XDECREF(object);
  delete self->plans;
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(reinterpret_cast<PyObject*>(self));
  Py_DECREF(type);
}

// describe(tensor): address, sizes and data type, to check that this was compiled for the PyTorch at hand.
PyObject* describe(PyObject*, PyObject* object) {
  const at::Tensor& tensor = tensor_of(object);
  PyObject* sizes = PyTuple_New(tensor.dim());
  for (int64_t i = 0; i < tensor.dim(); ++i) PyTuple_SET_ITEM(sizes, i, PyLong_FromLongLong(tensor.sizes()[i]));
  return Py_BuildValue(
    "(KNi)", reinterpret_cast<unsigned long long>(tensor.const_data_ptr()), sizes, (int)tensor.scalar_type()
  );
}

PyMethodDef caller_methods[] = {
  {"call", (PyCFunction)(void*)caller_call, METH_FASTCALL, nullptr},
  {"key", (PyCFunction)(void*)caller_key, METH_FASTCALL, nullptr},
  {"add", (PyCFunction)caller_add, METH_VARARGS, nullptr},
  {"replay", (PyCFunction)caller_replay, METH_VARARGS, nullptr},
  {"remove", (PyCFunction)caller_remove, METH_O, nullptr},
  {},
};
PyType_Slot caller_slots[] = {
  {Py_tp_new, (void*)caller_new}, {Py_tp_dealloc, (void*)caller_free}, {Py_tp_methods, caller_methods}, {},
};
PyType_Spec caller_spec = {"native_launch.Caller", sizeof(Caller), 0, Py_TPFLAGS_DEFAULT, caller_slots};
PyMethodDef functions[] = {
  {"connect", connect, METH_VARARGS, nullptr},
  {"describe", describe, METH_O, nullptr},
  {"start_recording", start_recording, METH_NOARGS, nullptr},
  {"listen", listen, METH_O, nullptr},
  {"stop_recording", stop_recording, METH_NOARGS, nullptr},
  {"is_device_pointer", is_device_pointer, METH_O, nullptr},
  {},
};
PyModuleDef module = {PyModuleDef_HEAD_INIT, "native_launch", nullptr, -1, functions};

}  // namespace

PyMODINIT_FUNC PyInit_native_launch() {
  PyObject* created = PyModule_Create(&module);
  PyObject* type = PyType_FromSpec(&caller_spec);
  if (created == nullptr || type == nullptr || PyModule_AddObject(created, "Caller", type) != 0) return nullptr;
  return created;
}
